// Makes, uses and destroys objects of the driver (streams, events, modules, captured graphs) while
// memory of other threads is moved.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#include "tests/end_to_end/programs/require.hpp"
#include "tests/kernels_in_ptx.hpp"

namespace meshed {

// Makes a stream, an event, a module and a captured graph, works with them on `memory` (two numbers
// on the device), and destroys them. `value`: its lowest byte fills the first number. `stored`: the
// number that the module's kernel stores: 7; 0 on a simulated GPU, which runs no kernels. Returns
// how many of the two numbers were wrong. The calling thread has a current context.
inline std::size_t make_and_destroy(unsigned* memory, unsigned value, unsigned stored) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  unsigned found[2] = {};
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  REQUIRE(cuModuleLoadData(&module, cuwarden::kernels::plain_code.c_str()));
  REQUIRE(cuModuleGetFunction(&kernel, module, "plain"));
  REQUIRE(cudaMemsetAsync(memory, 0, 2 * sizeof *memory, stream));
  // The graph fills the first number, and the module's kernel stores to the second one.
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  REQUIRE(cudaMemsetAsync(memory, static_cast<int>(value & 0xff), sizeof *memory, stream));
  REQUIRE(cudaStreamEndCapture(stream, &graph));
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0));
  REQUIRE(cudaGraphLaunch(executable, stream));
  auto out = reinterpret_cast<CUdeviceptr>(memory + 1);
  unsigned at = 4;
  void* arguments[] = {&out, &at};
  REQUIRE(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  REQUIRE(cudaEventRecord(event, stream));
  REQUIRE(cudaEventSynchronize(event));
  REQUIRE(cudaMemcpyAsync(found, memory, sizeof found, cudaMemcpyDeviceToHost, stream));
  REQUIRE(cudaStreamSynchronize(stream));
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cuModuleUnload(module);
  cudaEventDestroy(event);
  cudaStreamDestroy(stream);
  return (found[0] == (value & 0xff) * 0x01010101u ? 0u : 1u) + (found[1] == stored ? 0u : 1u);
}

// Returns true if the device runs kernels; false on a simulated GPU. `memory`: two numbers on the
// device, which are overwritten.
inline bool runs_kernels(unsigned* memory) { return make_and_destroy(memory, 1, 7) == 0; }

}  // namespace meshed
