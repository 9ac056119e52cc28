// Does a leak grow, or did it happen once? Judged by when the allocations that are still live were
// made: the time from the first of them to the end of the process is cut into four equal quarters.
// A leak that goes on leaves survivors in most quarters; a cache that fills at start, or a buffer
// that is made once per library, leaves them in one or two. At least four must be live, so that
// three chance survivors never count as growth.
//
// How fast: by the bytes that were added after the first quarter, in which much is made that stays
// for good reasons.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cuwarden {

struct Growth {
  std::uint64_t first_ns = 0;  // birth of the oldest live allocation
  std::uint64_t end_ns = 0;    // end of the process
  std::uint64_t count = 0;
  std::uint8_t quarters = 0;      // bit q: an allocation that is live was made in quarter q
  std::uint64_t later_bytes = 0;  // live, and made after the first quarter

  constexpr void add(std::uint64_t birth_ns, std::uint64_t bytes = 0) {
    ++count;
    if (birth_ns < first_ns || end_ns <= first_ns) return;
    const std::uint64_t quarter_ns = (end_ns - first_ns) / 4 + 1;
    const std::uint64_t quarter = (birth_ns - first_ns) / quarter_ns;
    quarters = static_cast<std::uint8_t>(quarters | 1u << (quarter < 3 ? quarter : 3));
    if (quarter > 0) later_bytes += bytes;
  }
  constexpr bool growing() const { return count >= 4 && std::popcount(quarters) >= 3; }
  // Null where it does not grow.
  constexpr std::optional<std::uint64_t> bytes_per_minute() const {
    if (!growing()) return std::nullopt;
    const double minutes = static_cast<double>(end_ns - first_ns) * 0.75 / 60e9;
    const double rate = static_cast<double>(later_bytes) / minutes;
    return rate < 0x1p53 ? static_cast<std::uint64_t>(rate) : std::uint64_t{1} << 53;
  }
  constexpr std::string_view name() const { return growing() ? "growing" : "one_time"; }
};

}  // namespace cuwarden
