// The numbers that `cuwarden top` reads from a process's ledger at one moment (a sample), and their
// changes between two samples.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime_hooks/ledger/read/reader.hpp"
#include "tools/cuwarden/top/top_growth.hpp"

namespace cuwarden {

// A group at the moment of a sample: all allocations with one call stack, kind of memory and
// device.
struct GroupSample {
  std::uint32_t id = 0;  // the group's row in the ledger
  // Live bytes, number of live allocations, allocations since the process's start.
  std::uint64_t live_bytes = 0, live_count = 0, allocations = 0;
  Kind kind{};
  DeviceOrdinal device = no_device;  // no_device for host memory
};

// The numbers of a process at one moment.
struct Sample {
  std::uint64_t time_ns = 0;        // moment of the sample, by monotonic_ns()
  std::vector<GroupSample> groups;  // all groups of the ledger, those without live memory, too
  // Sums over all allocations of one kind on one device, for each kind and device. The series of
  // the process's resident host memory (RSS) is left out.
  std::vector<ledger::SeriesView> series;
  // Sums over all series. device_bytes: live bytes of all kinds but host_bytes; managed memory
  // counts here. host_bytes: live bytes of page-locked and registered host memory. live_count: live
  // allocations. allocations: allocations since the process's start. failures: requests that were
  // refused.
  std::uint64_t device_bytes = 0, host_bytes = 0, live_count = 0, allocations = 0, failures = 0;
};

// Returns the time by CLOCK_MONOTONIC, in nanoseconds.
std::uint64_t monotonic_ns();
// Reads the numbers of a process from its ledger, at this moment.
Sample take_sample(const ledger::Reader&);

// The speed at which a process's or a group's memory changes: live bytes for each second (negative
// if they shrink), and new allocations for each second.
struct Change {
  double bytes_per_second = 0, allocations_per_second = 0;
};

// The samples of one process from the last ten seconds; the two newest stay in any case. Changes
// are measured from the oldest of these samples to the newest.
class Recent {
 public:
  // Adds a sample, which is newer than all others, and drops samples that are older than ten
  // seconds.
  void add(Sample);
  // True before the first sample was added.
  bool empty() const { return samples_.empty(); }
  // Returns the sample that was added last; there must be one.
  const Sample& newest() const { return samples_.back(); }
  // True if there are two samples or more, so that changes can be measured.
  bool knows_changes() const { return samples_.size() > 1; }
  // Returns the change of one group. `now`: the group in the newest sample.
  Change of_group(const GroupSample& now) const;
  // Returns the change of all memory of the process together: of devices and of the host.
  Change of_all() const;

 private:
  // Returns the time in seconds from the oldest sample to the newest, 0.001 or more.
  double seconds() const;
  std::deque<Sample> samples_;
  // Group id → index in the oldest sample's `groups`.
  std::unordered_map<std::uint32_t, std::size_t> oldest_groups_;
};

// The number by which a list is sorted, largest first. bytes: live bytes. growth: change of the
// live bytes. rate: new allocations per second.
enum class SortBy : std::uint8_t { bytes, growth, rate };
// Returns the groups of the newest sample, in the given order, largest number first. With
// SortBy::growth, groups that have grown for more than a minute (GrowingGroups) come before all
// others. Leaves out groups that have no live allocation and no new one in the last seconds.
std::vector<GroupSample> sorted_groups(const Recent&, const GrowingGroups&, SortBy);

}  // namespace cuwarden
