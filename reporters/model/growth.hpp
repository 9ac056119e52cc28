// Does a leak grow, or did it happen once? Judged by when the allocations that are still live were
// made: the time from the first of them to the end of the process, since its start is cut into four
// equal quarters. A leak that goes on leaves survivors in most quarters; a cache that fills at
// start, or a buffer that is made once per library, leaves them in one or two. At least four must
// be live, so that three chance survivors never count as growth.
//
// The speed of growth follows from the bytes that were added after the first quarter: much of what
// is allocated in the first quarter stays for good reasons.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cuwarden {

struct Growth {
  std::uint64_t first_ns = 0;  // time of the oldest live allocation, since the process's start
  std::uint64_t end_ns = 0;    // end of the process
  std::uint64_t count = 0;     // live allocations
  // live allocations, by the quarter of the time from first_ns to end_ns in which they were made
  std::array<std::uint64_t, 4> by_quarter{};
  // bytes of live allocations that were made after the first quarter
  std::uint64_t later_bytes = 0;

  constexpr std::uint64_t quarter_ns() const { return (end_ns - first_ns) / 4 + 1; }
  // Adds `births` live allocations of `bytes` each that were made at `birth_ns`, since the
  // process's start.
  constexpr void add(std::uint64_t birth_ns, std::uint64_t bytes = 0, std::uint64_t births = 1) {
    count += births;
    if (birth_ns < first_ns || end_ns <= first_ns) return;
    const std::uint64_t quarter = std::min<std::uint64_t>((birth_ns - first_ns) / quarter_ns(), 3);
    by_quarter[quarter] += births;
    if (quarter > 0) later_bytes += bytes * births;
  }
  // True if there are at least four live allocations, and they were made in at least three of the
  // four quarters.
  constexpr bool growing() const { return count >= 4 && std::ranges::count(by_quarter, 0u) <= 1; }
  // Returns the rate of growth; null if the group does not grow.
  constexpr std::optional<std::uint64_t> bytes_per_minute() const {
    if (!growing()) return std::nullopt;
    const double minutes = static_cast<double>(end_ns - first_ns) * 0.75 / 60e9;
    const double rate = static_cast<double>(later_bytes) / minutes;
    return rate < 0x1p53 ? static_cast<std::uint64_t>(rate) : std::uint64_t{1} << 53;
  }
  constexpr std::string_view name() const { return growing() ? "growing" : "one_time"; }
};

}  // namespace cuwarden
