// The time for which a wait for memory that was in vain is not repeated.
#pragma once

#include <cstdint>

namespace cuwarden {

// If a refused request has waited for memory in vain, or has paused the program in vain, the next
// attempt of that sort comes no sooner than this many times the attempt's length later.
inline constexpr std::uint64_t vain_times = 10;

}  // namespace cuwarden
