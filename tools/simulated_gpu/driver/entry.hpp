// Included by all files of entry points: the prototypes, the state, and the two lines that nearly
// every entry point begins with.
#pragma once

#include <mutex>

#include "driver_entries.hpp"
#include "tools/simulated_gpu/device/contexts.hpp"
#include "tools/simulated_gpu/device/device_memory.hpp"
#include "tools/simulated_gpu/device/pool.hpp"
#include "tools/simulated_gpu/device/simulator.hpp"
#include "tools/simulated_gpu/device/streams.hpp"

// Evaluates a CUresult and returns it unless it is CUDA_SUCCESS.
#define SIM_TRY(expression)                                                                      \
  do {                                                                                           \
    if (const CUresult sim_result = (expression); sim_result != CUDA_SUCCESS) return sim_result; \
  } while (false)

namespace cuwarden::simulated_gpu {

// Holds the simulator's lock.
struct Locked {
  Simulator& sim = simulator();
  std::unique_lock<std::mutex> lock{sim.mutex};
};

// Holds the lock and finds the thread's current context. `context` is valid only if `error` is
// CUDA_SUCCESS.
struct InContext : Locked {
  Context* context = nullptr;
  CUresult error = current_context(context);
};

// Returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and invalidates the capture, if a capture forbids
// this thread calls that are not part of it.
CUresult refuse_under_capture(Simulator& sim);

}  // namespace cuwarden::simulated_gpu
