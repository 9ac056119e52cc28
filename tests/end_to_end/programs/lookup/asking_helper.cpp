// A library without CUDA that asks if the process has it.
#include <dlfcn.h>

extern "C" [[gnu::visibility("default")]] int finds_cuda() {
  return dlsym(RTLD_DEFAULT, "cudaMalloc") != nullptr;
}
