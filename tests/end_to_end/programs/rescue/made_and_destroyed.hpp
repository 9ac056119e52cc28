// Makes, uses and destroys objects of the driver (streams, events, modules, captured graphs) while
// memory of other threads is moved.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#include "tests/kernels_in_ptx.hpp"

namespace meshed {

// If `is_good` is false, ends the process with status 1 and a line on stdout. `what`: name of the
// failed step in that line.
inline void need(bool is_good, const char* what) {
  if (is_good) return;
  std::printf("%s failed\n", what);
  std::fflush(stdout);
  std::_Exit(1);
}

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
  need(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "stream");
  need(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess, "event");
  need(cuModuleLoadData(&module, cuwarden::kernels::plain_code.c_str()) == CUDA_SUCCESS, "module");
  need(cuModuleGetFunction(&kernel, module, "plain") == CUDA_SUCCESS, "function");
  need(cudaMemsetAsync(memory, 0, 2 * sizeof *memory, stream) == cudaSuccess, "fill");
  // The graph fills the first number, and the module's kernel stores to the second one.
  need(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess, "begin");
  need(cudaMemsetAsync(memory, static_cast<int>(value & 0xff), sizeof *memory, stream) ==
           cudaSuccess,
       "fill");
  need(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "capture");
  need(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess, "instantiate");
  need(cudaGraphLaunch(executable, stream) == cudaSuccess, "launch of the graph");
  auto out = reinterpret_cast<CUdeviceptr>(memory + 1);
  unsigned at = 4;
  void* arguments[] = {&out, &at};
  need(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr) == CUDA_SUCCESS,
       "launch");
  need(cudaEventRecord(event, stream) == cudaSuccess, "record");
  need(cudaEventSynchronize(event) == cudaSuccess, "wait");
  need(cudaMemcpyAsync(found, memory, sizeof found, cudaMemcpyDeviceToHost, stream) == cudaSuccess,
       "copy");
  need(cudaStreamSynchronize(stream) == cudaSuccess, "synchronise");
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
