// The bug: a result is kept for each request and never freed. Before the leak is noticed, the job
// is killed: by the scheduler at its time limit, or by the kernel when memory runs out. A process
// cannot react to SIGKILL, so a tool that writes at exit has nothing to show.
//
// cuwarden's record lies in a file and outlives the process: `cuwarden run` makes the report from
// it at once, `cuwarden recover` at any later time.
//
//     killed [requests] [bytes a result]
#include <cuda_runtime_api.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "samples/planted_leaks.hpp"

namespace {

[[gnu::noinline]] void serve_request(std::size_t bytes) {
  void* scratch = nullptr;
  void* result = nullptr;
  sample::require(cudaMalloc(&scratch, bytes), "cudaMalloc");
  sample::require(cudaMalloc(&result, bytes), "cudaMalloc");
  // Stands for the request's computation.
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  sample::require(cudaFree(scratch), "cudaFree");
}
constexpr int keeping_line = __LINE__ - 5;

}  // namespace

int main(int argc, char** argv) {
  const std::size_t requests = sample::argument(argc, argv, 1, 20);
  const std::size_t bytes = sample::argument(argc, argv, 2, std::size_t{1} << 20);

  std::printf("%zu requests, and then a kill\n", requests);
  sample::print_leaks(
      {{"cudaMalloc", "device", requests, requests * bytes, "serve_request", keeping_line}});
  std::fflush(stdout);
  for (std::size_t request = 0; request < requests; ++request) serve_request(bytes);
  raise(SIGKILL);
}
