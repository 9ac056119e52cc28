// The bug: a staging buffer of pinned host memory for each step is never freed, and a buffer of the
// program is registered but never unregistered. The machine runs out of RAM, which no tool shows
// that looks at the device only; ordinary malloc grows beside it.
//
// cuwarden reports both lines with their kinds (pinned, registered) and their growth. The timeline
// has the resident memory of the whole process for comparison.
//
//     pinned_leak [steps] [bytes a step]
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "samples/planted_leaks.hpp"

namespace {

int pinned_line = 0;
int registered_line = 0;
std::vector<void*> history;  // Ordinary host memory of the program, which grows, too.

[[gnu::noinline]] void stage_step(std::size_t bytes) {
  void* staging = nullptr;
  pinned_line = __LINE__ + 1;
  sample::require(cudaMallocHost(&staging, bytes), "cudaMallocHost");
  std::memset(staging, 1, bytes);
}

[[gnu::noinline]] void share_with_device(void* memory, std::size_t bytes) {
  registered_line = __LINE__ + 1;
  sample::require(cudaHostRegister(memory, bytes, cudaHostRegisterDefault), "cudaHostRegister");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t steps = sample::argument(argc, argv, 1, 16);
  const std::size_t bytes = sample::argument(argc, argv, 2, std::size_t{1} << 20);

  void* field = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (field == nullptr) return 1;
  std::memset(field, 1, bytes);
  share_with_device(field, bytes);

  for (std::size_t step = 0; step < steps; ++step) {
    stage_step(bytes);
    void* results = std::malloc(bytes);  // Host memory that CUDA does not know.
    if (results == nullptr) return 1;
    std::memset(results, static_cast<int>(step) + 1, bytes);
    history.push_back(results);
    // Stands for the step's computation.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::printf("%zu steps\n", steps);
  sample::print_leaks(
      {{"cudaMallocHost", "pinned", steps, steps * bytes, "stage_step", pinned_line},
       {"cudaHostRegister", "registered", 1, bytes, "share_with_device", registered_line}},
      ",\"host_bytes\":" + std::to_string((2 * steps + 1) * bytes));
}
