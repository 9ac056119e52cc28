// To be preloaded into a program that knows nothing of it: another thread captures a stream. With
// CAPTURE_BESIDE=ended, the graph has been launched before the program begins. With =endless, the
// capture goes on until the process ends, and the thread says so if it is invalidated before.
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

cudaStream_t stream = nullptr;

void require(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "capture beside: %s: %s\n", what, cudaGetErrorName(result));
  std::_Exit(9);
}

void begin_capture() {
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  void* memory = nullptr;
  require(cudaMalloc(&memory, 4096), "cudaMalloc");
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  require(cudaMemsetAsync(memory, 1, 4096, stream), "cudaMemsetAsync");
}

void launch_once() {
  begin_capture();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  require(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  require(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  require(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

// Says so once the capture was invalidated. Ends when the driver does not answer any more.
void watch() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  while (status == cudaStreamCaptureStatusActive) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) return;
  }
  std::fprintf(stderr, "capture beside: invalidated\n");
}

[[gnu::constructor]] void start() {
  const char* const how = std::getenv("CAPTURE_BESIDE");
  if (how == nullptr) return;
  if (std::strcmp(how, "ended") == 0) return std::thread(launch_once).join();
  static std::atomic<bool> has_begun{false};
  std::thread([] {
    begin_capture();
    std::fprintf(stderr, "capture beside: begun\n");
    has_begun = true;
    has_begun.notify_one();
    watch();
  }).detach();
  has_begun.wait(false);
}

}  // namespace
