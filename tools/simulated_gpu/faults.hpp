// Failing on request: counts the calls that a rule names and says when one must fail.
#pragma once

#include <atomic>

#include "tools/simulated_gpu/driver_headers.hpp"

namespace cuwarden::simulated_gpu {

// One exported function. Its rules are looked up once.
struct CallSite {
  const char* name;
  std::atomic<int> inspected{0};  // 0 not yet, 1 no rule, 2 has rules
};

// CUDA_SUCCESS unless a rule makes this call fail, or one has taken away the device that it needs.
CUresult requested_failure(CallSite& site, bool needs_device);

}  // namespace cuwarden::simulated_gpu
