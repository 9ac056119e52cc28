// small_thread: a thread with a stack of 16 KiB allocates. The simulated driver takes 10 KiB of
// that.
#include <cuda_runtime_api.h>
#include <pthread.h>

#include <cstdio>

int main() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, 16384) != 0) return 2;
  pthread_t thread{};
  const auto allocate = [](void*) -> void* {
    void* block = nullptr;
    cudaMalloc(&block, 4096);
    return block;
  };
  if (pthread_create(&thread, &attributes, allocate, nullptr) != 0) return 2;
  void* block = nullptr;
  pthread_join(thread, &block);
  std::puts(block != nullptr ? "allocated" : "refused");
}
