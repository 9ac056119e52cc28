// The numbers that `top` reads from a ledger at one moment, and their changes between two moments.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime_hooks/ledger/read/reader.hpp"
#include "tools/cuwarden/top/top_growth.hpp"

namespace cuwarden {

// A group of allocations at the moment of a sample.
struct GroupSample {
  std::uint32_t id = 0;
  std::uint64_t live_bytes = 0, live_count = 0, allocations = 0;
  Kind kind{};
  DeviceOrdinal device = no_device;
};

// Figures of a process at one moment.
struct Sample {
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::vector<GroupSample> groups;
  std::vector<ledger::SeriesView> series;  // for each device; that of the host is left out
  // Sums over all series. Managed memory, which moves, counts as memory of a device.
  std::uint64_t device_bytes = 0, host_bytes = 0, live_count = 0, allocations = 0, failures = 0;
};

std::uint64_t monotonic_ns();
Sample take_sample(const ledger::Reader&);

// The speed at which figures change.
struct Change {
  double bytes_per_second = 0, allocations_per_second = 0;
};

// The samples of the last seconds. A change is measured from the oldest sample to the newest. That
// time is long enough for a meaningful rate, and short enough to see the rate change.
class Recent {
 public:
  void add(Sample);
  bool empty() const { return samples_.empty(); }
  const Sample& newest() const { return samples_.back(); }
  bool knows_changes() const { return samples_.size() > 1; }
  Change of_group(const GroupSample& now) const;
  Change of_all() const;

 private:
  double seconds() const;
  std::deque<Sample> samples_;
  std::unordered_map<std::uint32_t, std::size_t> oldest_groups_;  // id → row in the oldest sample
};

enum class SortBy : std::uint8_t { bytes, growth, rate };
// Returns the groups of the newest sample, sorted, the largest first. For SortBy::growth, groups
// that keep growing come before all others. Groups without live and without new allocations are
// left out.
std::vector<GroupSample> sorted_groups(const Recent&, const GrowingGroups&, SortBy);

}  // namespace cuwarden
