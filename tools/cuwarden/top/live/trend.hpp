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

// Length of an interval of a Trend, in nanoseconds.
inline constexpr std::uint64_t trend_interval_ns = 5'000'000'000;
// Most intervals of a Trend, which are those of five minutes.
inline constexpr std::size_t trend_intervals = 60;

// The highest live bytes in each interval of the last five minutes.
struct Trend {
  // Number of the first interval in `bytes`; interval 0 begins with the process. Sparklines put
  // intervals into bars by this number, so that old bars keep their intervals.
  std::uint64_t first = 0;
  // Highest live bytes of each interval, the oldest first; null: unknown.
  std::vector<std::optional<std::uint64_t>> bytes;
};

// The live bytes of one kind of memory on one device, at the moments at which `cuwarden top` read
// them.
class History {
 public:
  // Adds the live bytes at a moment, which must be later than all others. `time_ns`: nanoseconds
  // since the process's start. Drops moments that are too old for a Trend.
  void add(std::uint64_t time_ns, std::uint64_t bytes);
  // Returns the highest live bytes in each interval of the last five minutes. An interval in which
  // nothing was added gets the bytes of the ledger's timeline. `now_ns`: present time, in
  // nanoseconds since the process's start. `SeriesView`: the timeline of the same kind of memory
  // and device.
  Trend trend(std::uint64_t now_ns, const ledger::SeriesView&) const;

 private:
  // The live bytes at one moment.
  struct Moment {
    // time_ns: nanoseconds since the process's start. bytes: live bytes at this time.
    std::uint64_t time_ns, bytes;
  };
  std::deque<Moment> moments_;  // moments of about the last five minutes, oldest first
};

// Adds the bytes of `added` to those of `sum`, interval by interval. Both must have the same
// intervals, or one must be empty. An interval stays unknown only if it is unknown in both.
void add_trend(const Trend& added, Trend& sum);

// Returns a line of bars about the trend's bytes, at most `width` letters long, the newest bar at
// the right side. A bar shows the highest value of one or several intervals; the highest of all
// fills its letter. A space: the bytes are unknown, as before the process's start. `ascii`: true if
// only ASCII can be shown.
std::string sparkline(const Trend&, std::size_t width, bool ascii);

}  // namespace cuwarden
