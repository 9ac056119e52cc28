// cancelled: cancels a thread that allocates and frees in a loop.
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>

namespace {

void* allocate(void*) {
  for (;;) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, 4096) != cudaSuccess || cudaFree(memory) != cudaSuccess) std::abort();
    pthread_testcancel();
  }
}

}  // namespace

int main() {
  if (cudaFree(nullptr) != cudaSuccess) return 3;
  for (int i = 0; i < 20; ++i) {
    pthread_t thread{};
    if (pthread_create(&thread, nullptr, allocate, nullptr) != 0) return 3;
    usleep(2000);
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
  }
}
