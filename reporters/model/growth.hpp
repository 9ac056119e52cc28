// Tells leaks that grow from memory that is in use, by the times at which live allocations were
// made and by how long freed ones lived.
//
// A survivor is a live allocation that is old: more than 1.5 times as old as any freed allocation
// of its call stack became. It will probably never be freed. A leak that goes on makes survivors in
// many parts of the run, until near its end. A table that is filled once makes them in few parts.
// If there are hardly any survivors, the live memory is in use. Growth takes at least eight
// survivors, or five at about even distances, so that a few allocations of one moment never count.
// If the program marks steps, four survivors in three quarters of the steps are enough.
//
// The speed of growth follows from the bytes that were added after the first quarter of the run:
// much of what is allocated in the first quarter stays for good reasons.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

namespace cuwarden {

// Shortest time, in nanoseconds, for which a group must have grown before its growth by time is
// used in a forecast. Over a shorter time, the allocations of a program's start look like growth.
inline constexpr std::uint64_t least_growth_ns = 60'000'000'000;

// Counts the live allocations of one call stack, kind, function and device by the times at which
// they were made, and judges if they grow. Numbers of the program's steps may be used in place of
// times, in all members. The owner sets first_ns and end_ns before the first add().
struct Growth {
  // Time at which the oldest live allocation was made, in ns since the process's start.
  std::uint64_t first_ns = 0;
  // End of the process, in ns since its start; or the time of the first failed request after which
  // no live allocation was made.
  std::uint64_t end_ns = 0;
  std::uint64_t count = 0;  // number of live allocations that were added
  // Number of live allocations that were made in each quarter of the time from first_ns to end_ns.
  std::array<std::uint64_t, 4> by_quarter{};
  // Bytes of the live allocations that were made after the first quarter of the time from first_ns
  // to end_ns.
  std::uint64_t later_bytes = 0;
  // longest_life_ns: longest life of the call stack's freed allocations in ns, as LongestLife::ns()
  // returns it: rounded up, and without frees shortly before the end. frees: number of all freed
  // allocations of the call stack. 0: none was freed.
  std::uint64_t longest_life_ns = 0, frees = 0;
  // True if growth is judged by `by_quarter` alone, not by `survivors`: numbers of steps are used
  // in place of times, or the times are known by quarters only.
  bool has_quarters_only = false;
  // survivors: number of live allocations that were made before survivors_end_ns().
  // last_survivor_ns: time at which the newest of these allocations was made, in ns since the
  // process's start. 0: there are none.
  std::uint64_t survivors = 0, last_survivor_ns = 0;
  // Number of survivors (live allocations made before survivors_end_ns()) in each of twelve equal
  // parts of the time from first_ns to survivors_end_ns().
  std::array<std::uint64_t, 12> survivors_by_part{};
  // Time at which the newest survivor outside the last of these parts was made, in ns since the
  // process's start. 0: there is none.
  std::uint64_t last_early_survivor_ns = 0;

  // Returns the time, in ns since the process's start, before which a live allocation must have
  // been made in order to be a survivor: 1.5 times longest_life_ns before end_ns. 0: none can be
  // one.
  constexpr std::uint64_t survivors_end_ns() const { return survivors_end_ns(end_ns); }
  // Returns the time before which a live allocation must have been made in order to be a survivor,
  // if the run ended at `end`: 1.5 times longest_life_ns before `end`. 0: none can be one. Both
  // times are in ns since the process's start.
  constexpr std::uint64_t survivors_end_ns(std::uint64_t end) const {
    const std::uint64_t young = longest_life_ns + longest_life_ns / 2;
    return end - std::min(young, end);
  }
  // Returns the length of a quarter of the time from first_ns to end_ns, rounded down, and 1 ns
  // more, so that four quarters cover the whole time.
  constexpr std::uint64_t quarter_ns() const { return (end_ns - first_ns) / 4 + 1; }
  // Returns the quarter of the time from first_ns to end_ns, from 0 to 3, in which a moment lies.
  // `after_first`: time from first_ns to the moment. The result is exact also for numbers of steps:
  // of four steps, each is a quarter.
  constexpr std::uint64_t quarter_of(std::uint64_t after_first) const {
    __extension__ using Wide = unsigned __int128;
    return std::min<std::uint64_t>(
        static_cast<std::uint64_t>(Wide{after_first} * 4 / (end_ns - first_ns)), 3);
  }
  // Adds `births` live allocations of `bytes` each. `birth_ns`: moment at which they were made, in
  // nanoseconds since the process's start, or the number of their step. Only `count` grows if
  // birth_ns is before first_ns, or if end_ns is not after first_ns.
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
    if (part < parts - 1) last_early_survivor_ns = std::max(last_early_survivor_ns, birth_ns);
  }
  // Returns the number of survivors that were made in the last part of survivors_by_part, if the
  // group is a burst and they are at most an eighth of all; otherwise 0. They are just old enough,
  // and were probably in use at the end.
  constexpr std::uint64_t late_after_burst() const {
    const std::uint64_t late = survivors_by_part.back();
    return late <= survivors / 8 && name() == "burst" ? late : 0;
  }
  // True if there are at least four live allocations, made in at least three quarters (of four)
  // of the time from first_ns to end_ns.
  constexpr bool is_in_most_quarters() const {
    return count >= 4 && std::ranges::count(by_quarter, 0u) <= 1;
  }
  // True if the group grows: survivors (old live allocations) were made in many parts of the time
  // from first_ns to survivors_end_ns(), until near its end. If has_quarters_only is true,
  // is_in_most_quarters() decides.
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
  // Returns the bytes of live allocations that were made after the first quarter of the time from
  // first_ns to end_ns, divided by the length of the other three quarters: bytes per nanosecond, or
  // per step if numbers of steps are used in place of times. Returns null if growing() is false.
  constexpr std::optional<std::uint64_t> bytes_per_unit() const {
    if (!growing()) return std::nullopt;
    const std::uint64_t first_quarter = (end_ns - first_ns + 3) / 4;
    return later_bytes / std::max<std::uint64_t>(end_ns - first_ns - first_quarter, 1);
  }
  // Returns the word of the report for the group's growth. Survivors are old live allocations:
  // those made before survivors_end_ns(). "growing": growing() is true. "burst": many survivors
  // were made, but only in a part of the run. "steady": as many allocations were freed as are live,
  // and at most half of the live ones are survivors. "one_time": all others.
  constexpr std::string_view name() const {
    if (growing()) return "growing";
    if (has_quarters_only) return "one_time";
    if (survivors >= fewest_survivors) return "burst";
    return frees >= count && survivors <= count / 2 ? "steady" : "one_time";
  }

 private:
  // True if there are five survivors or more, each in a different part of survivors_by_part, at
  // about even distances, until near the last part.
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
  // fewest_survivors: fewest survivors that make growth or a burst. few_survivors: from this number
  // of survivors on, growth needs survivors in six parts of survivors_by_part; below, in four.
  static constexpr std::uint64_t fewest_survivors = 8, few_survivors = 40;
};

}  // namespace cuwarden
