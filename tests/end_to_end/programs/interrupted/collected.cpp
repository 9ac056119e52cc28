// collected: another thread stops the first one by signals, as a garbage collector does. The
// handler looks at all memory from its stack pointer to the upper end of the thread's stack.
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>

namespace {

std::uintptr_t top = 0;
std::atomic<bool> over{false};

void look(int) {
  char here = 0;
  volatile std::uintptr_t sum = 0;
  for (auto at = reinterpret_cast<std::uintptr_t>(&here) & ~std::uintptr_t{15}; at < top;
       at += 4096)
    sum = sum + *reinterpret_cast<const std::uintptr_t*>(at);
}

}  // namespace

int main() {
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t bytes = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &bytes);
  top = reinterpret_cast<std::uintptr_t>(low) + bytes;
  struct sigaction action {};
  action.sa_handler = look;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  std::thread collector([first = pthread_self()] {
    while (!over) {
      pthread_kill(first, SIGUSR1);
      usleep(100);
    }
  });
  void* block = nullptr;
  for (int i = 0; i < 20; ++i) cudaMalloc(&block, 4096);
  const cudaError_t refused = cudaMalloc(&block, std::size_t{1} << 45);
  over = true;
  collector.join();
  std::printf("refused: %s\n", cudaGetErrorName(refused));
}
