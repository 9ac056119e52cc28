// unwinding HOW: with throwing_wrapper, a refused cudaMalloc ends by an exception ("throw"), or a
// refused cudaHostAlloc by the end of its thread ("exit"). Then the program goes on.
#include <cuda_runtime_api.h>
#include <pthread.h>

#include <cstdio>
#include <new>
#include <string>

namespace {

constexpr std::size_t too_large = std::size_t{1} << 45;

void* allocate_on_the_host(void*) {
  void* block = nullptr;
  cudaHostAlloc(&block, too_large, 0);
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* block = nullptr;
  if (std::string(argv[1]) == "throw") {
    try {
      cudaMalloc(&block, too_large);
    } catch (const std::bad_alloc&) {
      std::puts("caught");
    }
  } else {
    pthread_t thread{};
    void* result = nullptr;
    pthread_create(&thread, nullptr, allocate_on_the_host, nullptr);
    pthread_join(thread, &result);
    std::puts(result != nullptr ? "ended" : "returned");
  }
  cudaMalloc(&block, 5000);
  return 3;
}
