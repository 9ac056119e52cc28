// Waits that were in vain are not repeated at once.
#pragma once

#include <cstdint>

namespace cuwarden {

// A wait that was in vain is not repeated for this many times its length.
inline constexpr std::uint64_t vain_times = 10;

}  // namespace cuwarden
