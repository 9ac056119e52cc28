// The numbers that `cuwarden top` reads from a process's ledger at one moment (a sample), and their
// changes between two samples.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// A group at the moment of a sample: all allocations with one call stack, function, kind of memory
// and device.
struct GroupSample {
  std::uint32_t id = 0;                          // the group's row in the ledger, from 1
  std::uint64_t live_bytes = 0, live_count = 0;  // bytes and number of live allocations
  std::uint64_t allocations = 0;                 // number of allocations since the process's start
  Kind kind{};                                   // kind of memory of the group
  DeviceOrdinal device = no_device;  // CUDA ordinal in the process; no_device for host memory
};

// The numbers that were read from a process's ledger at one moment.
struct Sample {
  std::uint64_t time_ns = 0;  // moment of the sample: CLOCK_MONOTONIC, in nanoseconds
  // All groups of the ledger (allocations with one call stack, function, kind of memory and
  // device), also those without live memory.
  std::vector<GroupSample> groups;
  // Totals of each kind of memory on each device, for kinds that the program asks CUDA for
  // (is_asked_for()). The sums below, but for `rescues`, are over these kinds.
  std::vector<ledger::SeriesView> series;
  // Live bytes of the process in all kinds of `series` but page-locked and registered host memory.
  std::uint64_t device_bytes = 0;
  std::uint64_t host_bytes = 0;   // live bytes of page-locked and registered host memory
  std::uint64_t live_count = 0;   // number of live allocations
  std::uint64_t allocations = 0;  // number of allocations since the process's start
  std::uint64_t failures = 0;     // number of refused requests since the process's start
  // Sum of the highest live bytes of each kind of memory on each device (`series`).
  std::uint64_t peak_bytes = 0;
  // Number of requests since the process's start that the driver refused and cuwarden served.
  std::uint64_t rescues = 0;
};

// Reads the present numbers of a process from its ledger. `Reader`: reads that ledger.
Sample take_sample(const ledger::Reader&);

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
