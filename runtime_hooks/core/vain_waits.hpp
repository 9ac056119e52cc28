// The pause before an attempt that waited for device memory without success is repeated.
#pragma once

#include <cstdint>

namespace cuwarden {

// A factor. An attempt that waited for device memory, or paused the program for it, and gained
// none, is repeated only after `vain_times` times its own duration.
inline constexpr std::uint64_t vain_times = 10;

}  // namespace cuwarden
