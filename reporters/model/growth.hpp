// Tells leaks that grow from memory that is in use. It goes by the times at which live allocations
// were made, and by how long freed ones lived.
//
// A survivor is a live allocation that is older than any freed one of its call stack became, by
// half: it will probably never be freed. A leak that goes on leaves survivors in many parts of the
// time from the first of them on, until near the end. A table that is filled once leaves them in
// few. Where there are hardly any survivors, what is live is in use. At least eight survivors make
// growth, or five at about even distances, so that a handful of one moment never counts. Programs
// that mark steps tell more of themselves: there, four survivors in three quarters of the steps are
// enough.
//
// The speed of growth follows from the bytes that were added after the first quarter: much of what
// is allocated in the first quarter stays for good reasons.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

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
  // End of the process, or the refused request after which its leaks could not grow, in ns since
  // the process's start.
  std::uint64_t end_ns = 0;
  std::uint64_t count = 0;  // number of the call stack's live allocations
  // Number of live allocations that were made in each quarter of the time from first_ns to end_ns.
  std::array<std::uint64_t, 4> by_quarter{};
  // Bytes of the live allocations that were made after the first quarter of the time from first_ns
  // to end_ns.
  std::uint64_t later_bytes = 0;
  // Longest life of the call stack's freed allocations, in ns (LongestLife::ns()), and number of
  // them; 0: none was freed.
  std::uint64_t longest_life_ns = 0, frees = 0;
  // True if the quarters alone tell about growth: numbers of steps stand for the times, and only
  // survivors are added, or the times are known by quarters.
  bool has_quarters_only = false;
  // Number of survivors, time at which the newest of them was made, and their number in each of
  // twelve parts of the time in which survivors can have been made.
  std::uint64_t survivors = 0, last_survivor_ns = 0;
  std::array<std::uint64_t, 12> survivors_by_part{};

  // Returns the time before which an allocation must have been made in order to be a survivor; 0:
  // none can be one.
  constexpr std::uint64_t survivors_end_ns() const { return survivors_end_ns(end_ns); }
  // Returns the same for a run that ended at `end`, in ns since the process's start.
  constexpr std::uint64_t survivors_end_ns(std::uint64_t end) const {
    const std::uint64_t young = longest_life_ns + longest_life_ns / 2;
    return end - std::min(young, end);
  }
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
    const std::uint64_t until_ns = survivors_end_ns();
    if (birth_ns >= until_ns) return;
    survivors += births;
    last_survivor_ns = std::max(last_survivor_ns, birth_ns);
    __extension__ using Wide = unsigned __int128;
    constexpr std::size_t parts = std::tuple_size_v<decltype(survivors_by_part)>;
    const auto part =
        static_cast<std::size_t>(Wide{birth_ns - first_ns} * parts / (until_ns - first_ns));
    survivors_by_part[std::min(part, parts - 1)] += births;
  }
  // True if there are at least four live allocations, made in at least three quarters (of four)
  // of the time from first_ns to end_ns.
  constexpr bool is_in_most_quarters() const {
    return count >= 4 && std::ranges::count(by_quarter, 0u) <= 1;
  }
  // True if survivors go on to be made. With has_quarters_only, the same as is_in_most_quarters().
  constexpr bool growing() const {
    if (has_quarters_only) return is_in_most_quarters();
    if (survivors < fewest_survivors) return are_even();
    const std::uint64_t span_ns = survivors_end_ns() - first_ns;
    const std::uint64_t rest_ns = survivors_end_ns() - last_survivor_ns;
    const auto parts = std::ranges::count_if(survivors_by_part, [](auto n) { return n != 0; });
    // Few survivors cannot lie in many parts.
    return (parts >= 6 && rest_ns < span_ns / 3) ||
           (survivors < few_survivors && parts >= 4 && rest_ns < span_ns / 4);
  }
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
  // Returns the report's word: "growing"; "burst" if many survivors were made in a part of the
  // time; "steady" if allocations are freed, and most live ones are no survivors; else "one_time".
  constexpr std::string_view name() const {
    if (growing()) return "growing";
    if (has_quarters_only) return "one_time";
    if (survivors >= fewest_survivors) return "burst";
    return frees >= count && survivors <= count / 2 ? "steady" : "one_time";
  }

 private:
  // True if five survivors or more lie in as many parts of the time, at about even distances, until
  // the end.
  constexpr bool are_even() const {
    if (survivors < 5) return false;
    std::uint64_t parts = 0, empty = 0, most_empty = 0;
    for (const std::uint64_t here : survivors_by_part) {
      if (here != 0) ++parts;
      empty = here == 0 ? empty + 1 : 0;
      most_empty = std::max(most_empty, empty);
    }
    return parts == survivors && most_empty <= survivors_by_part.size() / survivors;
  }
  // Fewest survivors that make growth or a burst, and number from which on they must lie in more
  // parts of the time.
  static constexpr std::uint64_t fewest_survivors = 8, few_survivors = 40;
};

}  // namespace cuwarden
