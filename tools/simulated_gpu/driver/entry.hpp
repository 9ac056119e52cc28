// Included by all files with the simulated driver's exported functions (entry points): prototypes
// of these functions, the simulator's state, and objects that take its lock.
#pragma once

#include <mutex>

#include "driver_entries.hpp"
#include "tools/simulated_gpu/device/contexts.hpp"
#include "tools/simulated_gpu/device/device_memory.hpp"
#include "tools/simulated_gpu/device/pool.hpp"
#include "tools/simulated_gpu/device/simulator.hpp"
#include "tools/simulated_gpu/device/streams.hpp"

// Evaluates a CUresult; returns it from the calling function unless it is CUDA_SUCCESS.
#define SIM_TRY(expression)                                                                      \
  do {                                                                                           \
    if (const CUresult sim_result = (expression); sim_result != CUDA_SUCCESS) return sim_result; \
  } while (false)

namespace cuwarden::simulated_gpu {

// Takes the simulator's lock (Simulator::mutex), and releases it when the object is destroyed.
// Functions to which `lock` is passed may release the lock while they wait, and take it again.
struct Locked {
  Simulator& sim = simulator();  // State of the simulated driver in this process.
  // Holds the simulator's lock.
  std::unique_lock<std::mutex> lock{sim.mutex};
};

// Takes the simulator's lock as Locked does, and finds the calling thread's current context.
struct InContext : Locked {
  // The calling thread's current context; meaningless if `error` is not CUDA_SUCCESS.
  Context* context = nullptr;
  // CUDA_SUCCESS, or the error that the exported function must return because the current context
  // is missing or destroyed.
  CUresult error = current_context(context);
};

// Holds the simulator's lock while the object exists, and finds the calling thread's current
// context and one of its streams.
struct InStream : InContext {
  // `handle`: the stream as the program names it; null stands for the default stream.
  explicit InStream(CUstream handle) {
    if (error == CUDA_SUCCESS) error = find_stream(*context, handle, stream);
  }
  Stream* stream = nullptr;  // The stream; meaningless if `error` is not CUDA_SUCCESS.
};

// For exported functions that CUDA forbids during a capture of streams into a graph. The modes of
// the capture and of the calling thread decide if a capture forbids the call. Invalidates each
// capture that forbids the call. If there is one, returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
// with which the function must fail; otherwise CUDA_SUCCESS.
CUresult refuse_under_capture(Simulator& sim);

}  // namespace cuwarden::simulated_gpu
