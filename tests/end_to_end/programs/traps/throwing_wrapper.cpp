// A library behind the shim whose cudaMalloc does not return if the request is refused: it throws
// std::bad_alloc. Its cudaHostAlloc ends the calling thread in that case.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>

#include <new>

namespace {

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  const auto result = next<cudaError_t (*)(void**, size_t)>("cudaMalloc")(pointer, bytes);
  if (result != cudaSuccess) throw std::bad_alloc();
  return result;
}

extern "C" cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  const auto real = next<cudaError_t (*)(void**, size_t, unsigned)>("cudaHostAlloc");
  const cudaError_t result = real(pointer, bytes, flags);
  if (result != cudaSuccess) pthread_exit(pointer);
  return result;
}
