// The time for which a wait for device memory is not repeated after it was in vain.
#pragma once

#include <cstdint>

namespace cuwarden {

// A factor. If an attempt waited for memory or paused the program, and brought no memory, the next
// such attempt begins only after this many times the length of the vain one.
inline constexpr std::uint64_t vain_times = 10;

}  // namespace cuwarden
