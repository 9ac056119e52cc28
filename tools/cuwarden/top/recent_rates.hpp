// The changes of a process's memory over about the last ten seconds, which `cuwarden top` shows as
// GROWTH and ALLOCS/s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "tools/cuwarden/top/top_sample.hpp"

namespace cuwarden {

// The speed at which a process's or a group's memory changes.
struct Change {
  // bytes_per_second: change of the live bytes, negative if they shrink. allocations_per_second:
  // number of new allocations.
  double bytes_per_second = 0, allocations_per_second = 0;
};

// The samples (numbers read from the ledger at one moment) of one process from about the last ten
// seconds; the two newest stay in any case. Changes are measured from the oldest of them to the
// newest.
class Recent {
 public:
  // Adds a sample of the same process, which must be newer than all others. Drops samples that are
  // ten seconds or more older than it, except for the newest of them. Two samples stay in any case.
  void add(Sample);
  // True before the first sample was added.
  bool empty() const { return samples_.empty(); }
  // Returns the sample that was added last; there must be one.
  const Sample& newest() const { return samples_.back(); }
  // True if there are two samples or more, so that changes can be measured.
  bool knows_changes() const { return samples_.size() > 1; }
  // Returns the change of one group of allocations from the oldest sample to the newest; 0 with one
  // sample. `now`: the group in the newest sample. A group that the oldest sample lacks counts from
  // 0.
  Change of_group(const GroupSample& now) const;
  // Returns the change of all memory that the program asked CUDA for (is_asked_for()), of devices
  // and of the host, from the oldest sample to the newest; 0 with one sample. There must be a
  // sample.
  Change of_all() const;

 private:
  // Returns the time in seconds from the oldest sample to the newest, 0.001 or more.
  double seconds() const;
  std::deque<Sample> samples_;  // the samples, oldest first
  // Group's row in the ledger → index of the group in the oldest sample's `groups`.
  std::unordered_map<std::uint32_t, std::size_t> oldest_groups_;
};

// Returns the groups of the newest sample, most live bytes first; there must be a sample. Leaves
// out groups without a live allocation that have made no allocation since the oldest sample. Also
// leaves out contexts of unknown size, whose live bytes are 0.
std::vector<GroupSample> groups_by_bytes(const Recent&);

}  // namespace cuwarden
