// To be preloaded into a program that knows nothing of it: another thread captures a stream. With
// CAPTURE_BESIDE=ended, the graph has been launched before the program begins. With =endless, the
// capture goes on until the process ends. A line on stderr then says in which state it is.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/comes_about.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

cudaStream_t stream = nullptr;

void begin_capture() {
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 4096));
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  REQUIRE(cudaMemsetAsync(memory, 1, 4096, stream));
}

void launch_once() {
  begin_capture();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph));
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0));
  REQUIRE(cudaGraphLaunch(executable, stream));
  REQUIRE(cudaStreamSynchronize(stream));
}

// A capture that was invalidated stays so, since nothing ends it. This library is linked with the
// driver and asks it itself, so that its handler runs before the driver's.
void say_state() {
  CUstreamCaptureStatus status{};
  const CUresult result = cuStreamIsCapturing(stream, &status);
  if (result != CUDA_SUCCESS)
    std::fprintf(stderr, "capture beside: error %d at the end\n", static_cast<int>(result));
  else
    std::fprintf(stderr, "capture beside: %s at the end\n",
                 status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? "active" : "not active");
}

[[gnu::constructor]] void start() {
  const char* const how = std::getenv("CAPTURE_BESIDE");
  if (how == nullptr) return;
  if (std::strcmp(how, "ended") == 0) return std::thread(launch_once).join();
  static std::atomic<bool> has_begun{false};
  std::thread([] {
    begin_capture();
    std::atexit(say_state);
    has_begun = true;
    for (;;) pause();
  }).detach();
  cuwarden::wait_until("the capture has begun", [] { return has_begun.load(); });
}

}  // namespace
