// Counts the calls that a rule of CUWARDEN_SIM_FAIL names, and tells which of them must fail.
#pragma once

#include <atomic>

#include "tools/simulated_gpu/hardware/driver_headers.hpp"

namespace cuwarden::simulated_gpu {

// One exported function. Its rules are looked up once.
struct CallSite {
  const char* name;
  std::atomic<int> inspected{0};  // 0: not looked up yet, 1: no rule, 2: has rules.
};

// Returns the error with which this call must fail: by a rule, or because a rule has taken away the
// device that the call needs. CUDA_SUCCESS if the call may go on.
CUresult requested_failure(CallSite& site, bool needs_device);

}  // namespace cuwarden::simulated_gpu
