// The bug: an exception between cudaMalloc and cudaFree skips the cudaFree. The program catches it
// further up, skips the bad batch and goes on, with one buffer lost each time.
//
// cuwarden reports the line of the cudaMalloc, and how many of its buffers were never freed.
//
//     lost_on_throw [bad batches] [bytes a buffer]
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "samples/planted_leaks.hpp"

namespace {

int allocating_line = 0;

void parse(bool malformed) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // Stands for the batch's computation.
  if (malformed) throw std::runtime_error("malformed batch");
}

[[gnu::noinline]] void process_batch(std::size_t bytes, bool malformed) {
  void* scratch = nullptr;
  allocating_line = __LINE__ + 1;
  sample::require(cudaMalloc(&scratch, bytes), "cudaMalloc");
  parse(malformed);  // Throws for a malformed batch.
  sample::require(cudaFree(scratch), "cudaFree");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t bad_batches = sample::argument(argc, argv, 1, 10);
  const std::size_t bytes = sample::argument(argc, argv, 2, std::size_t{1} << 20);

  std::size_t skipped = 0;
  for (std::size_t batch = 0; batch < 4 * bad_batches; ++batch) {
    try {
      process_batch(bytes, batch % 4 == 3);
    } catch (const std::runtime_error&) {
      ++skipped;
    }
  }
  std::printf("%zu batches, %zu skipped\n", 4 * bad_batches, skipped);
  sample::print_leaks(
      {{"cudaMalloc", "device", skipped, skipped * bytes, "process_batch", allocating_line}});
}
