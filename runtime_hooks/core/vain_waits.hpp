// The time for which a wait for memory that was in vain is not repeated.
#pragma once

#include <cstdint>

namespace cuwarden {

// Least time between attempts that wait for memory, or pause the program, after one was in vain:
// this many times the length of that attempt.
inline constexpr std::uint64_t vain_times = 10;

}  // namespace cuwarden
