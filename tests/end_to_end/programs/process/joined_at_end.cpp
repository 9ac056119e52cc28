// joined_at_end: main returns, and a destructor of a static object waits for a thread. That thread
// then ends the process by exit().
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/comes_about.hpp"

namespace {

std::atomic<bool> main_has_returned{false};

struct Joining {
  std::thread thread;
  ~Joining() {
    main_has_returned = true;
    thread.join();
  }
} joining;

}  // namespace

int main() {
  void* memory = nullptr;
  if (cudaMalloc(&memory, 256) != cudaSuccess) std::abort();
  joining.thread = std::thread([] {
    cuwarden::wait_until("main() has returned", [] { return main_has_returned.load(); });
    std::exit(3);
  });
  return 5;
}
