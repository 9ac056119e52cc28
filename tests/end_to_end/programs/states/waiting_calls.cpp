// waiting_calls: makes streams, code and an executable graph for which the driver takes device
// memory, and between them makes calls that wait until the device has run a kernel.
//
// With CUWARDEN_SIM_KERNEL_TIME, each of these calls waits for about that time. The last line has
// the number of waits, and how many of them lasted 50 ms or more by the shim's clock.
#include <cstdint>
#include <cstdio>

#include "tests/end_to_end/programs/let_time_pass.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/end_to_end/programs/states/kernels.hpp"

namespace {

int waits = 0, long_waits = 0;

CUfunction load_code() {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  REQUIRE(cuModuleLoadData(&module, code_with_table.c_str()));
  REQUIRE(cuModuleGetFunction(&kernel, module, "_Z5shortv"));
  return kernel;
}

CUstream open_stream() {
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  return stream;
}

void launch(CUfunction kernel, CUstream stream) {
  REQUIRE(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
}

CUgraphExec make_executable(CUfunction kernel) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = kernel;
  parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
  parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
  REQUIRE(cuGraphCreate(&graph, 0));
  REQUIRE(cuGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
  REQUIRE(cuGraphInstantiate(&exec, graph, 0));
  return exec;
}

// Makes a call that waits for work of the device, and counts it.
template <class Call>
void wait(const Call& call) {
  const std::int64_t start_ns = present_time_ns();
  REQUIRE(call());
  ++waits;
  if (present_time_ns() - start_ns >= 50'000'000) ++long_waits;
}

void wait_in_all_ways(CUfunction kernel, CUstream stream) {
  unsigned word = 0;
  CUdeviceptr block = 0, freed = 0;
  CUevent event = nullptr;
  REQUIRE(cuMemAlloc(&block, 1 << 20));
  REQUIRE(cuMemAlloc(&freed, 1 << 20));
  REQUIRE(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  launch(kernel, stream);
  wait([&] { return cuStreamSynchronize(stream); });
  launch(kernel, stream);
  REQUIRE(cuEventRecord(event, stream));
  wait([&] { return cuEventSynchronize(event); });
  launch(kernel, stream);
  wait([] { return cuCtxSynchronize(); });
  launch(kernel, nullptr);
  wait([&] { return cuMemcpyDtoH(&word, block, sizeof word); });
  launch(kernel, stream);
  wait([&] { return cuMemFree(freed); });
  // Many launches are queued at once, of kernels that each last.
  const CUstream other = open_stream();
  for (int i = 0; i < 4; ++i) launch(kernel, other);
  wait([&] { return cuStreamSynchronize(other); });
  REQUIRE(cuEventDestroy(event));
  REQUIRE(cuMemFree(block));
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  REQUIRE(cuInit(0));
  REQUIRE(cuDevicePrimaryCtxRetain(&context, 0));
  REQUIRE(cuCtxSetCurrent(context));
  const CUfunction kernel = load_code();
  const CUstream stream = open_stream();
  const CUgraphExec exec = make_executable(kernel);
  launch(kernel, stream);
  wait_in_all_ways(kernel, stream);
  REQUIRE(cuGraphLaunch(exec, stream));
  wait([&] { return cuStreamSynchronize(stream); });
  load_code();
  for (int i = 0; i < 8; ++i) open_stream();
  std::printf("{\"waits\":%d,\"long_waits\":%d}\n", waits, long_waits);
}
