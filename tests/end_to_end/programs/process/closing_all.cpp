// closing_all FILE: while the process ends, another thread closes all descriptors from 3 on, and
// appends lines to a file of its own.
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/comes_about.hpp"

static std::atomic<bool> ends{false};  // true once main() returns

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* block = nullptr;
  for (int i = 0; i < 50; ++i) cudaMalloc(&block, 4096);
  std::thread([path = argv[1]] {
    cuwarden::wait_awake_until("main() returns", [] { return ends.load(); });
    for (int number = 3; number < 1024; ++number) close(number);
    const int file = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    for (int i = 0; i < 3000; ++i) {
      if (write(file, "mine\n", 5) != 5) _exit(9);
      usleep(100);
    }
  }).detach();
  ends = true;
}
