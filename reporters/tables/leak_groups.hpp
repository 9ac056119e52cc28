// The leaks of a ledger: what is still live, by group, and what went only because its context did.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reporters/model/growth.hpp"
#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/call_frames.hpp"
#include "runtime_hooks/ledger/read/group_sums.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

struct LeakGroup {
  ledger::GroupView group;
  bool released_by_context = false;
  std::uint64_t count = 0, bytes = 0;
  std::optional<std::uint64_t> first_ns, last_ns;  // births of those that are live
  std::optional<DeviceAddress> example;            // the oldest that is live
  std::optional<std::uint64_t> unmapped_count;     // vmm: handles unmapped but never released
  Growth growth;
};

// Sorted by bytes, then count, descending. Reads the records twice: the quarters of Growth need
// each group's oldest survivor first. All groups, as they were read, are added to the sums.
std::vector<LeakGroup> leak_groups(const ledger::Reader&, std::uint64_t end_ns, ledger::GroupSums&);
// As leak_groups(), for a process that goes on. Counts and bytes are the group's own, read at one
// moment; the records, which come and go meanwhile, only give times and addresses.
std::vector<LeakGroup> live_groups(const ledger::Reader&, std::uint64_t end_ns, ledger::GroupSums&);

// Sums up what leaks, and what contexts released.
model::Leaks leaks_of(const std::vector<LeakGroup>&);
void put_leak_groups(const ledger::Reader&, const std::vector<LeakGroup>&, const CallFrames&,
                     Put<model::LeakGroup>);

}  // namespace cuwarden
