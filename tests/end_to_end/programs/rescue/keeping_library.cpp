// A library that keeps memory for itself. It is built under the names of libraries that do so.
#include <cuda_runtime_api.h>

#include <cstddef>

namespace {

// Allocates by a function of the runtime. Returns the address; null if the request was refused.
template <class Function>
void* kept(Function allocate, std::size_t bytes) {
  void* address = nullptr;
  return allocate(&address, bytes) == cudaSuccess ? address : nullptr;
}

}  // namespace

// Allocate memory of the current device, or page-locked memory of the host. Return its address;
// null if the request was refused.
extern "C" void* keep(std::size_t bytes) {
  return kept([](void** to, std::size_t size) { return cudaMalloc(to, size); }, bytes);
}
extern "C" void* keep_on_host(std::size_t bytes) {
  return kept([](void** to, std::size_t size) { return cudaMallocHost(to, size); }, bytes);
}
// Makes streams that are never destroyed. Returns the last one; null if it could not be made.
extern "C" void* keep_streams(std::size_t count) {
  cudaStream_t stream = nullptr;
  for (std::size_t i = 0; i < count; ++i)
    if (cudaStreamCreate(&stream) != cudaSuccess) return nullptr;
  return stream;
}
