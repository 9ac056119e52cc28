// The pause before an attempt that waited for device memory without success is repeated.
#pragma once

#include <cstdint>

namespace cuwarden {

// A factor. If an attempt waited for device memory, or paused the program for it, and gained none,
// no such attempt is made for a while after it. For a pause of the program, this time is
// `vain_times` times the pause's own duration. For a wait, it is `vain_times` times the longest
// duration that the settings allow.
inline constexpr std::uint64_t vain_times = 10;

}  // namespace cuwarden
