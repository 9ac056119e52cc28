// Lets calls of the simulated driver fail on purpose, by the rules in CUWARDEN_SIM_FAIL
// (FaultRule).
#pragma once

#include <atomic>

#include "tools/simulated_gpu/hardware/driver_headers.hpp"

namespace cuwarden::simulated_gpu {

// An exported function of the simulated driver. Each function has one static object of this type.
struct CallSite {
  const char* name;  // Full name of the exported function, such as cuMemAlloc_v2.
  // Result of looking for the function in the rules of CUWARDEN_SIM_FAIL. 0: not yet looked up; 1:
  // no rule names it; 2: a rule names it.
  std::atomic<int> inspected{0};
};

// Counts a call of the function, and returns the error with which the call must fail by the rules
// of CUWARDEN_SIM_FAIL; CUDA_SUCCESS if it may go on. `needs_device`: false for functions such as
// cuDriverGetVersion; if true, the call also fails once a rule has said that the device is lost. If
// a rule says so, raises SIGUSR1 in the calling thread, never returns, or calls
// simulated_gpu_tells(). That is the program's function `extern "C" void simulated_gpu_tells(const
// char* function)`, which gets the full name of the driver's function. If the program exports none,
// the call just goes on. Callers do not hold Simulator::mutex.
CUresult requested_failure(CallSite& site, bool needs_device);

}  // namespace cuwarden::simulated_gpu
