// Does a leak grow, or did it happen once? Judged by when the allocations that are still live were
// made: the time from the first of them to the end of the process is cut into four equal quarters.
// A leak that goes on leaves survivors in most quarters; a cache that fills at start, or a buffer
// that is made once per library, leaves them in one or two. At least four must be live, so that
// three chance survivors never count as growth.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace cuwarden {

struct Growth {
  std::uint64_t first_ns = 0;  // birth of the oldest live allocation
  std::uint64_t end_ns = 0;    // end of the process
  std::uint64_t count = 0;
  std::uint8_t quarters = 0;  // bit q: an allocation that is live was made in quarter q

  constexpr void add(std::uint64_t birth_ns) {
    ++count;
    if (birth_ns < first_ns || end_ns <= first_ns) return;
    const std::uint64_t quarter_ns = (end_ns - first_ns) / 4 + 1;
    const std::uint64_t quarter = (birth_ns - first_ns) / quarter_ns;
    quarters = static_cast<std::uint8_t>(quarters | 1u << (quarter < 3 ? quarter : 3));
  }
  constexpr bool growing() const { return count >= 4 && std::popcount(quarters) >= 3; }
  constexpr std::string_view name() const { return growing() ? "growing" : "one_time"; }
};

}  // namespace cuwarden
