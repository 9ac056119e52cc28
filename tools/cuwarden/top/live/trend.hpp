// Live bytes over the last minutes, for the sparklines of `cuwarden top`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "runtime_hooks/ledger/read/views.hpp"

namespace cuwarden {

// Length of an interval of a Trend in nanoseconds, and most intervals of a Trend: five minutes.
inline constexpr std::uint64_t trend_interval_ns = 5'000'000'000;
inline constexpr std::size_t trend_intervals = 60;

// The highest live bytes in each interval of the last minutes.
struct Trend {
  // Number of the first interval; interval 0 begins with the process. Sparklines divide the time by
  // it, so that they move as a whole.
  std::uint64_t first = 0;
  // Highest live bytes of each interval; null: unknown.
  std::vector<std::optional<std::uint64_t>> bytes;
};

// The live bytes of one kind of memory on one device, as samples have seen them.
class History {
 public:
  // Adds a moment, which must be later than all others. `time_ns`: time since the process's start.
  // Drops moments that are too old for a Trend.
  void add(std::uint64_t time_ns, std::uint64_t bytes);
  // Returns the highest live bytes in each interval up to the present one. An interval without a
  // moment of this object has the bytes of the ledger's timeline. `now_ns`: present time since the
  // process's start. SeriesView: the ledger's timeline of the same kind and device.
  Trend trend(std::uint64_t now_ns, const ledger::SeriesView&) const;

 private:
  struct Moment {
    std::uint64_t time_ns, bytes;
  };
  std::deque<Moment> moments_;  // oldest first
};

// Adds the bytes of the intervals of the second trend, which has the same intervals or is empty, to
// the first, which has the same or is empty. An interval is unknown if it is so in both.
void add_trend(const Trend& added, Trend& sum);

// Returns the trend as a line of bars, newest at the right side, at most `width` letters. A bar is
// the highest value of one interval or of several; the highest bar of the line is full. A space: an
// interval that is unknown, as before the process's start. `ascii`: true if only ASCII can be
// shown.
std::string sparkline(const Trend&, std::size_t width, bool ascii);

}  // namespace cuwarden
