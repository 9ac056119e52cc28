// Makes two kinds of tables of the report from a ledger: about the parts of each device's memory,
// and about memory that is held but cannot be used. Each put_*() passes each row of its table to
// its last parameter.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "reporters/model/fragmentation.hpp"
#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/tables/groups/implicit_groups.hpp"
#include "reporters/tables/groups/library_reserves.hpp"
#include "reporters/tables/slabs.hpp"
#include "reporters/verdicts/incident_case.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// For each device, by its CUDA ordinal, the slabs of the driver (2 MiB pages from which it cuts
// small requests) and the bytes lost to rounding, as find_fragmentation() returns them.
using Fragmentations = std::map<std::int32_t, Fragmentation>;

// Returns, by device, the bytes that contexts take by the ledger's present figures
// (ImplicitBytes::contexts()): the item `context` of the report's table `accounts`. Devices that
// were never read (cuMemGetInfo), or whose figures are impossible, are left out.
ContextBytes context_bytes(const ledger::Reader&);
// Passes all rows of the report's table `accounts` to the last parameter. A row is a part of a
// device's used memory: at the end of the process (at present, if it still runs), or at a refused
// request of its memory. At the end, live and implicit bytes are the ledger's latest, and the used
// bytes follow from free_bytes_now(). Devices whose used memory is not known at such a moment have
// no rows for it. `series`: result of all_series(), the totals of each kind of memory on each
// device. `libraries`: result of implicit_of_libraries(), or of live_implicit_of_libraries() if the
// process still runs. `incidents`: the refused requests.
void put_accounts(const ledger::Reader&, const std::vector<ledger::SeriesView>& series,
                  const Fragmentations&, const LibrariesImplicit& libraries,
                  const std::vector<IncidentCase>& incidents, Put<model::AccountItem>);
// Calls the last parameter, with a row of the report, for each device in Fragmentations: the number
// of its slabs (2 MiB pages from which the driver cuts small requests), and the bytes that other
// requests cannot use. `series`: result of all_series(), the totals of each kind of memory on each
// device.
void put_fragmentation(const ledger::Reader&, const std::vector<ledger::SeriesView>& series,
                       const Fragmentations&, Put<model::Fragmentation>);
// Adds the call stacks of all groups of allocations that have live pieces in slabs (2 MiB pages
// from which the driver cuts small requests).
void add_stacks(const ledger::Reader&, const Fragmentations&, CallFrames&);
// Finds the call stacks of groups of allocations (stack, function, kind, device). A device may have
// tens of thousands of slabs with the same few groups, so each group is read from the ledger once.
class StacksOfGroups {
 public:
  // Keeps references to both; they must outlive the object.
  StacksOfGroups(const ledger::Reader& reader, const CallFrames& frames)
      : reader_(reader), frames_(frames) {}
  // Returns the report's ids of the groups' call stacks, each once, in the order of the groups. A
  // stack is left out if it was not added to the CallFrames. Groups of id 0 are none.
  std::vector<model::Id> of(std::span<const GroupId> groups);

 private:
  const ledger::Reader& reader_;  // reads the ledger that has the groups
  const CallFrames& frames_;      // has the stacks' ids in the report
  // Group → the report's id of its stack, for each group that was asked for.
  std::unordered_map<std::uint32_t, model::MaybeId> known_;
};
// Calls the last parameter, with a row of the report, for each slab with a live piece: its address,
// size class, number of live pieces, and call stacks. A slab is a 2 MiB page from which the driver
// cuts small requests, its pieces. The stacks must have been added to the CallFrames before.
void put_slab_map(const ledger::Reader&, const Fragmentations&, const CallFrames&,
                  Put<model::Slab>);
// Calls the last parameter, with a row of the report, for each group of allocations (stack,
// function, kind, device) that has live pieces in slabs (2 MiB pages from which the driver cuts
// small requests). The groups' stacks must have been added to the CallFrames before; rows of other
// stacks name no stack.
void put_slab_holders(const ledger::Reader&, const Fragmentations&, const CallFrames&,
                      Put<model::SlabHolder>);

}  // namespace cuwarden
