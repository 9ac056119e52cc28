// Measures what a kernel launch, the launch of a CUDA graph and a copy take on the processor, in
// batches of 200 calls, which fit into the stream's queue.
//
//     call_costs launch|graph|copy
//
// Says "ready". Then, for each number of batches that it reads from its input, prints the median of
// as many batches in ns a call.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/end_to_end/programs/require.hpp"

namespace {

__global__ void nothing() {}

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "launch";
  constexpr int calls = 200;
  cudaStream_t stream;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  void* buffer = nullptr;
  REQUIRE(cudaMalloc(&buffer, 1 << 20));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 8; ++i) nothing<<<1, 1, 0, stream>>>();
  REQUIRE(cudaStreamEndCapture(stream, &graph));
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0));

  std::function<void()> call;
  if (std::strcmp(what, "launch") == 0)
    call = [&] { nothing<<<1, 1, 0, stream>>>(); };
  else if (std::strcmp(what, "graph") == 0)
    call = [&] { REQUIRE(cudaGraphLaunch(executable, stream)); };
  else
    call = [&] {
      REQUIRE(cudaMemcpyAsync(static_cast<char*>(buffer) + (512 << 10), buffer, 4096,
                              cudaMemcpyDeviceToDevice, stream));
    };
  const auto median_of = [&](int batches) {
    std::vector<double> times;
    for (int batch = 0; batch < batches; ++batch) {
      const auto begun = std::chrono::steady_clock::now();
      for (int i = 0; i < calls; ++i) call();
      const std::chrono::duration<double, std::nano> took =
          std::chrono::steady_clock::now() - begun;
      REQUIRE(cudaStreamSynchronize(stream));
      times.push_back(took.count() / calls);
    }
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  };
  median_of(20);  // early calls load code, and the driver makes its queues
  std::puts("ready");
  std::fflush(stdout);
  for (int batches = 0; std::scanf("%d", &batches) == 1 && batches > 0;) {
    std::printf("%.2f\n", median_of(batches));
    std::fflush(stdout);
  }
}
