// What is live by kind and device, added up from the groups as they were read once. A process that
// goes on changes a series and its groups between two looks at them: a table of the one and a sum
// over the other would not agree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "runtime_hooks/ledger/reader.hpp"

namespace cuwarden {

class LiveTotals {
 public:
  void add(const ledger::GroupView& group) {
    Sum& sum = sums_[{group.kind, group.device}];
    sum.live_count += group.live_count;
    sum.live_bytes += live_bytes(group);
    sum.allocations += group.allocations;
    sum.frees += group.frees;
    sum.failures += group.failures;
  }

  // Between an allocation's bytes and its count, or its count and its bytes when it goes.
  static std::uint64_t live_bytes(const ledger::GroupView& group) {
    return group.live_count == 0 ? 0 : group.live_bytes;
  }

  // Takes the place of what the series states.
  void put_into(ledger::SeriesView& series) const {
    if (series.host_rss) return;
    const auto found = sums_.find({series.kind, series.device});
    const Sum sum = found == sums_.end() ? Sum{} : found->second;
    series.live_count = sum.live_count;
    series.live_bytes = sum.live_bytes;
    series.allocations = sum.allocations;
    series.frees = sum.frees;
    series.failures = sum.failures;
    // What is live was reached, if only just now.
    series.peak_count = std::max(series.peak_count, sum.live_count);
    series.peak_bytes = std::max(series.peak_bytes, sum.live_bytes);
  }

 private:
  struct Sum {
    std::uint64_t live_count = 0, live_bytes = 0, allocations = 0, frees = 0, failures = 0;
  };
  std::map<std::pair<Kind, DeviceOrdinal>, Sum> sums_;
};

}  // namespace cuwarden
