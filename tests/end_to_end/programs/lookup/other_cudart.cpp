// A second CUDA runtime of another version in the same process, as PyTorch and CuPy may bring one
// each. Small, and distinguishable: it counts its calls and keeps its own last error.
#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>

#define EXPORTED extern "C" [[gnu::visibility("default")]] int

namespace {

int calls = 0;
int last_error = 0;

using Lookup = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

template <typename Function>
Function driver(const char* name, int version) {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW);
  static const auto lookup = reinterpret_cast<Lookup>(dlsym(handle, "cuGetProcAddress_v2"));
  void* found = nullptr;
  lookup(name, &found, version, 0, nullptr);
  return reinterpret_cast<Function>(found);
}

void make_context() {
  CUcontext context = nullptr;
  driver<CUresult (*)(unsigned int)>("cuInit", 2000)(0);
  driver<CUresult (*)(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain", 7000)(&context, 0);
  driver<CUresult (*)(CUcontext)>("cuCtxSetCurrent", 4000)(context);
}

int noted(CUresult result) {
  if (result != CUDA_SUCCESS) last_error = static_cast<int>(result);
  return static_cast<int>(result);
}

}  // namespace

EXPORTED cudaMalloc(void** pointer, std::size_t bytes) {
  ++calls;
  make_context();
  CUdeviceptr memory = 0;
  const CUresult result =
      driver<CUresult (*)(CUdeviceptr*, std::size_t)>("cuMemAlloc", 3020)(&memory, bytes);
  *pointer = reinterpret_cast<void*>(memory);
  return noted(result);
}
EXPORTED cudaFree(void* pointer) {
  ++calls;
  return noted(
      driver<CUresult (*)(CUdeviceptr)>("cuMemFree", 3020)(reinterpret_cast<CUdeviceptr>(pointer)));
}
EXPORTED cudaGetLastError() {
  const int error = last_error;
  last_error = 0;
  return error;
}
EXPORTED other_cudart_calls() { return calls; }
