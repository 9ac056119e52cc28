// What `top` reads of a ledger at one moment, and what changed between two such moments.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime_hooks/ledger/read/reader.hpp"
#include "tools/cuwarden/top_growth.hpp"

namespace cuwarden {

struct GroupSample {
  std::uint32_t id = 0;
  std::uint64_t live_bytes = 0, live_count = 0, allocations = 0;
  Kind kind{};
  DeviceOrdinal device = no_device;
};

struct Sample {
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::vector<GroupSample> groups;
  std::vector<ledger::SeriesView> series;  // without the host's
  // Sums over the series: memory of devices (managed memory, which moves, included) and of the
  // host.
  std::uint64_t device_bytes = 0, host_bytes = 0, live_count = 0, allocations = 0, failures = 0;
};

std::uint64_t monotonic_ns();
Sample take_sample(const ledger::Reader&);

struct Change {
  double bytes_per_second = 0, allocations_per_second = 0;
};

// The samples of the last seconds. Changes are from the oldest to the newest of them: over a time
// long enough for a rate to mean something, and short enough to see it change.
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
  std::unordered_map<std::uint32_t, std::size_t> oldest_groups_;  // id → row of the oldest
};

enum class SortBy : std::uint8_t { bytes, growth, rate };
// The groups of the newest sample in that order, the largest first; by growth, those that keep
// growing come before all others. Groups that have nothing live and make nothing are left
// out.
std::vector<GroupSample> sorted_groups(const Recent&, const GrowingGroups&, SortBy);

}  // namespace cuwarden
