// Tells a leak that grows from one that happened once, by the times at which the allocations that
// are still live were made. The time from the oldest of them to the end of the process is cut into
// four equal quarters. A leak that goes on leaves live allocations in most quarters. A cache that
// fills at start, or a buffer that is made once per library, leaves them in one or two. At least
// four allocations must be live, so that three chance survivors never count as growth.
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

// Time for which a group must have grown before its growth by time is foretold. Over a shorter
// time, the allocations of a program's start look like growth.
inline constexpr std::uint64_t least_growth_ns = 60'000'000'000;

// The live allocations of one call stack, kind, function and device, counted by the time at which
// they were made, or by the number of the program's step. first_ns and end_ns are set before the
// first add().
struct Growth {
  // Time at which the oldest live allocation was made, in ns since the process's start.
  std::uint64_t first_ns = 0;
  std::uint64_t end_ns = 0;  // end of the process, in ns since its start
  std::uint64_t count = 0;   // number of the call stack's live allocations
  // Number of live allocations that were made in each quarter of the time from first_ns to end_ns.
  std::array<std::uint64_t, 4> by_quarter{};
  // Bytes of the live allocations that were made after the first quarter of the time from first_ns
  // to end_ns.
  std::uint64_t later_bytes = 0;

  // Returns the length of a quarter of the time from first_ns to end_ns, rounded down, and 1 ns
  // more, so that four quarters cover the whole time.
  constexpr std::uint64_t quarter_ns() const { return (end_ns - first_ns) / 4 + 1; }
  // Returns the quarter, from 0 to 3, in which a time after first_ns lies. Exact for few units,
  // too: of four steps, each is a quarter.
  constexpr std::uint64_t quarter_of(std::uint64_t after_first) const {
    __extension__ using Wide = unsigned __int128;
    return std::min<std::uint64_t>(
        static_cast<std::uint64_t>(Wide{after_first} * 4 / (end_ns - first_ns)), 3);
  }
  // Adds `births` live allocations of `bytes` each that were made at `birth_ns`, in nanoseconds
  // since the process's start. An allocation made before first_ns only adds to `count`, and so do
  // all if end_ns is not after first_ns.
  constexpr void add(std::uint64_t birth_ns, std::uint64_t bytes = 0, std::uint64_t births = 1) {
    count += births;
    if (birth_ns < first_ns || end_ns <= first_ns) return;
    const std::uint64_t quarter = quarter_of(birth_ns - first_ns);
    by_quarter[quarter] += births;
    if (quarter > 0) later_bytes += bytes * births;
  }
  // True if there are at least four live allocations, made in at least three quarters (of four)
  // of the time from first_ns to end_ns.
  constexpr bool growing() const { return count >= 4 && std::ranges::count(by_quarter, 0u) <= 1; }
  // Returns the rate at which the live bytes grew after the first quarter of the time from first_ns
  // to end_ns, in bytes per minute, 2^53 at most. Returns null if growing() is false.
  constexpr std::optional<std::uint64_t> bytes_per_minute() const {
    if (!growing()) return std::nullopt;
    const double minutes = static_cast<double>(end_ns - first_ns) * 0.75 / 60e9;
    const double rate = static_cast<double>(later_bytes) / minutes;
    return rate < 0x1p53 ? static_cast<std::uint64_t>(rate) : std::uint64_t{1} << 53;
  }
  // Returns the bytes of live allocations that were made after the first quarter, divided by the
  // length of the other three: bytes by step if numbers of steps stand for the times. Returns null
  // if growing() is false.
  constexpr std::optional<std::uint64_t> bytes_per_unit() const {
    if (!growing()) return std::nullopt;
    const std::uint64_t first_quarter = (end_ns - first_ns + 3) / 4;
    return later_bytes / std::max<std::uint64_t>(end_ns - first_ns - first_quarter, 1);
  }
  // Returns the report's word for growing(): "growing" or "one_time".
  constexpr std::string_view name() const { return growing() ? "growing" : "one_time"; }
};

}  // namespace cuwarden
