// The time for which a wait for device memory is not repeated after it was in vain.
#pragma once

#include <cstdint>

namespace cuwarden {

// A factor of time. If an attempt waited for device memory or paused the program for it, and
// brought none, it is repeated only after this many times its own duration.
inline constexpr std::uint64_t vain_times = 10;

}  // namespace cuwarden
