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

// The live allocations of a group: of one call stack, kind of memory and device.
struct LeakGroup {
  ledger::GroupView group;
  bool released_by_context = false;
  std::uint64_t count = 0, bytes = 0;
  // times at which the first and the last live allocation were made, since the start
  std::optional<std::uint64_t> first_ns, last_ns;
  std::optional<DeviceAddress> example;  // address of the oldest live allocation
  // virtual memory only: handles that were unmapped but never released
  std::optional<std::uint64_t> unmapped_count;
  Growth growth;
};

// Returns the groups with live allocations, largest first by bytes, then by count. `end_ns`: end of
// the process, since its start. Adds all groups to the sums. Reads the records twice, because
// Growth needs each group's oldest live allocation first.
std::vector<LeakGroup> leak_groups(const ledger::Reader&, std::uint64_t end_ns, ledger::GroupSums&);
// As leak_groups(), for a process that goes on. Counts and bytes come from the groups' counters,
// read at one moment. The records change meanwhile, so they only give times and addresses.
std::vector<LeakGroup> live_groups(const ledger::Reader&, std::uint64_t end_ns, ledger::GroupSums&);

// Returns the sums of the leaks, and of the memory that ends of contexts released.
model::Leaks leaks_of(const std::vector<LeakGroup>&);
void put_leak_groups(const ledger::Reader&, const std::vector<LeakGroup>&, const CallFrames&,
                     Put<model::LeakGroup>);

}  // namespace cuwarden
