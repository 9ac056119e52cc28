// Measures what a kernel launch, the launch of a CUDA graph and a copy take on the processor, in
// batches that fit into the stream's queue. Prints the median of the batches in ns a call.
//
//     call_costs launch|graph|copy [batches]
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

namespace {

__global__ void nothing() {}

void require(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "call_costs: %s\n", cudaGetErrorString(result));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "launch";
  const int batches = argc > 2 ? std::atoi(argv[2]) : 2000;
  constexpr int calls = 200;
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  void* buffer = nullptr;
  require(cudaMalloc(&buffer, 1 << 20));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 8; ++i) nothing<<<1, 1, 0, stream>>>();
  require(cudaStreamEndCapture(stream, &graph));
  require(cudaGraphInstantiate(&executable, graph, 0));

  std::function<void()> call;
  if (std::strcmp(what, "launch") == 0)
    call = [&] { nothing<<<1, 1, 0, stream>>>(); };
  else if (std::strcmp(what, "graph") == 0)
    call = [&] { require(cudaGraphLaunch(executable, stream)); };
  else
    call = [&] {
      require(cudaMemcpyAsync(static_cast<char*>(buffer) + (512 << 10), buffer, 4096,
                              cudaMemcpyDeviceToDevice, stream));
    };
  std::vector<double> times;
  for (int batch = -20; batch < batches; ++batch) {
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    require(cudaStreamSynchronize(stream));
    if (batch >= 0) times.push_back(took.count() / calls);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  std::printf("{\"median_ns\": %.2f}\n", times[times.size() / 2]);
}
