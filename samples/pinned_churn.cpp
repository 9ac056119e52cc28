// The bug: each step allocates a buffer of pinned host memory and frees it at its end. Pinning and
// unpinning are work for the kernel on each page, and both wait for other calls of their kind. So
// the steps take longer than their computation.
//
// Users see a slow program and a device that waits; nothing fails, and nothing leaks. The last line
// of output says how long the steps took, and how much of that cudaMallocHost and cudaFreeHost.
//
//     pinned_churn [steps] [bytes a step]
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "samples/planned_shortage.hpp"

namespace {

using Clock = std::chrono::steady_clock;

sample::Account account;
Clock::duration in_both_calls{};
int line = 0;

[[gnu::noinline]] void* make_staging(std::size_t bytes) {
  void* staging = nullptr;
  const auto before = Clock::now();
  line = __LINE__ + 1;
  sample::require(cudaMallocHost(&staging, bytes), "cudaMallocHost");
  in_both_calls += Clock::now() - before;
  account.allocated(bytes);
  return staging;
}

void drop_staging(void* staging, std::size_t bytes) {
  const auto before = Clock::now();
  sample::require(cudaFreeHost(staging), "cudaFreeHost");
  in_both_calls += Clock::now() - before;
  account.freed(bytes);
}

std::size_t nanoseconds(Clock::duration time) {
  return static_cast<std::size_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t steps = sample::argument(argc, argv, 1, 300);
  const std::size_t bytes = sample::argument(argc, argv, 2, 8 * sample::kMiB);

  void* field = nullptr;
  sample::require(cudaMalloc(&field, bytes), "cudaMalloc");
  Clock::duration longest_step{};
  const auto before = Clock::now();
  for (std::size_t step = 0; step < steps; ++step) {
    const auto step_began = Clock::now();
    void* staging = make_staging(bytes);
    std::memset(staging, static_cast<int>(step), bytes);
    sample::require(cudaMemcpy(field, staging, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    drop_staging(staging, bytes);
    longest_step = std::max(longest_step, Clock::now() - step_began);
  }
  const auto took = Clock::now() - before;
  sample::require(cudaFree(field), "cudaFree");

  std::printf("%zu steps\n", steps);
  std::printf("{\"steps\":%zu%s%s%s%s%s%s%s%s%s%s}\n", steps,
              sample::fact("bytes_a_step", bytes).c_str(),
              sample::fact("function", "make_staging").c_str(),
              sample::fact("line", static_cast<std::size_t>(line)).c_str(),
              sample::fact("live_bytes", account.live_bytes).c_str(),
              sample::fact("live_count", account.live_count).c_str(),
              sample::fact("freed_count", account.freed_count).c_str(),
              sample::fact("freed_bytes", account.freed_bytes).c_str(),
              sample::fact("steps_ns", nanoseconds(took)).c_str(),
              sample::fact("longest_step_ns", nanoseconds(longest_step)).c_str(),
              sample::fact("pinning_ns", nanoseconds(in_both_calls)).c_str());
  return 0;
}
