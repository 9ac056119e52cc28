// The bug: two allocators on one device. A library (tensor_cache.cpp) has trained a model, released
// its tensors, and keeps their memory for its next request. The program then asks the device
// itself, which has nothing left: the cache is idle, but the library was not told to empty it.
//
// Users see an out-of-memory in one library, while the other says that it uses nothing.
//
//     two_libraries [register]
//
// With `register` the program tells cuwarden how to empty the library's cache. Its request is then
// served, if requests are rescued.
#include <cuda_runtime_api.h>
#include <cuwarden.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "samples/libraries/tensor_cache.hpp"
#include "samples/planned_shortage.hpp"

namespace {

sample::Account account;  // Counts memory of the program and the library together.

bool train(std::size_t tensor_bytes, std::size_t tensors) {
  std::vector<void*> model;
  for (std::size_t i = 0; i < tensors; ++i) {
    void* tensor = tensor_cache_allocate(tensor_bytes);
    if (tensor == nullptr) return false;
    account.allocated(tensor_bytes);
    model.push_back(tensor);
  }
  for (void* tensor : model) tensor_cache_release(tensor);
  return true;
}

[[gnu::noinline]] sample::Request join_tables(std::size_t bytes) {
  void* table = nullptr;
  // Missing here: tensor_cache_empty().
  auto request = sample::Request::planned("cudaMalloc", bytes, __func__, __LINE__ + 1);
  request.result = cudaMalloc(&table, bytes);
  sample::free_if_served(request, table, account);
  return request;
}

std::size_t empty_tensor_cache(int /*device*/, std::size_t /*bytes*/, void* /*argument*/) {
  const std::size_t idle = tensor_cache_idle_bytes();
  tensor_cache_empty();
  return idle;
}

}  // namespace

int main(int argc, char** argv) {
  // The library is named here because it holds its lock while it calls CUDA, and emptying its cache
  // needs that lock.
  if (argc > 1 && std::string_view(argv[1]) == "register")
    cuwarden_register_reclaimer("tensor cache", "libtensor_cache.so", empty_tensor_cache, nullptr);

  constexpr std::size_t kTensors = 24;
  const std::size_t free = sample::device_memory().free;
  const std::size_t tensor_bytes =
      free / 10 * 8 / kTensors / sample::kDevicePage * sample::kDevicePage;
  if (!train(tensor_bytes, kTensors)) {
    std::fprintf(stderr, "the training found no memory\n");
    return 1;
  }
  const sample::Request request = join_tables(free / 2);
  std::printf("trained with %zu tensors\n", kTensors);
  return sample::conclude(request, account,
                          sample::fact("cache_idle_bytes", tensor_cache_idle_bytes()) +
                              sample::fact("cache_module", "libtensor_cache.so") +
                              sample::fact("cache_function", "tensor_cache_allocate"));
}
