// A library that a program is linked with: what it keeps, its static destructor frees, after all of
// the program's own destructors and handlers.
#include <cuda_runtime_api.h>

namespace {

struct Kept {
  void* memory = nullptr;
  ~Kept() { cudaFree(memory); }
} kept;

}  // namespace

extern "C" [[gnu::visibility("default")]] int allocate_until_unloaded(unsigned long bytes) {
  return cudaMalloc(&kept.memory, bytes);
}
