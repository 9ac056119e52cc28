// What the driver says of addresses, corrected where these are the pool's: to the program a range
// is one allocation of the device, and to the driver it is not. Each takes the driver's answer and
// the call's parameters, and returns what the program gets. Called only once there was a range.
#pragma once

#include <atomic>

#include "runtime_hooks/families/recorder.hpp"

namespace cuwarden::families {

// There was a range of the pool in this process, or more memory is to be seen than there is.
inline constinit std::atomic<bool> pool_answers{false};

// The bodies of hooks.def's QUERY rows.
#define QUERY(result, name, parameters, arguments) \
  result name##_of_pool CUWARDEN_WITH_ANSWER parameters;
#define CUWARDEN_WITH_ANSWER(...) (Recorder & recorder, CUresult answer, __VA_ARGS__) noexcept
#include "runtime_hooks/driver/hooks.def"
#undef CUWARDEN_WITH_ANSWER

}  // namespace cuwarden::families
