// Included by all files with the driver's exported functions (entry points): their prototypes, the
// simulator's state, and objects that take its lock.
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

// Holds the simulator's lock (Simulator::mutex) while the object exists.
struct Locked {
  Simulator& sim = simulator();
  std::unique_lock<std::mutex> lock{sim.mutex};
};

// Holds the simulator's lock, and finds the calling thread's current context. `error`:
// CUDA_SUCCESS, or the error that the exported function must return because no context is usable.
struct InContext : Locked {
  Context* context = nullptr;
  CUresult error = current_context(context);
};

// To be called by functions that must not be called during a capture of streams into a graph. If a
// capture forbids such calls to the calling thread, by its mode and the thread's, invalidates the
// capture and returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. Otherwise returns CUDA_SUCCESS.
CUresult refuse_under_capture(Simulator& sim);

}  // namespace cuwarden::simulated_gpu
