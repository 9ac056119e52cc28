// Makes the report's tables about the amounts of memory from a ledger: readings of devices, totals,
// timeline and peaks. Each put_*() passes each row of its table to its last parameter.
#pragma once

#include <vector>

#include "reporters/model/device_id.hpp"
#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "runtime_hooks/ledger/read/group_sums.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Returns copies of the ledger's series for kinds of memory that the program asks for. A series is
// the totals and the timeline of one kind of memory on one device. The series of the process's
// resident memory (RSS), and those of implicit memory and of frameworks' blocks, are left out. In
// the copies, counts and live bytes come from `sums`, the exact sums over all groups of
// allocations. A peak is never less than the live bytes.
std::vector<ledger::SeriesView> all_series(const ledger::Reader&, const ledger::GroupSums& sums);

// Calls the last parameter, with a row of the report, for each device that the process used.
// `series`: result of all_series(), the totals of each kind of memory on each device.
void put_devices(const ledger::Reader&, const std::vector<ledger::SeriesView>& series,
                 Put<model::Device>);
// Calls the last parameter, with a row of the report, for each kind of memory on each device: the
// sums of its allocations over the run. `series`: result of all_series().
void put_totals(const std::vector<ledger::SeriesView>& series, Put<model::Total>);
// Calls the last parameter, with a row of the report, for each span of time of each series. A
// series is a kind of memory on a device, the blocks that frameworks have handed out, or the
// process's resident memory (RSS). Rows of host memory have no device. Implicit memory, such as
// that of contexts and streams (is_implicit()), has no rows.
void put_timeline(const ledger::Reader&, Put<model::Bucket>);
// Calls the last parameter, with a row of the report, for each group of allocations (stack,
// function, kind, device) that held memory at a peak: the moment at which most bytes of its kind
// were live on its device. Implicit memory (is_implicit()) has no rows. The stacks must have been
// added to the CallFrames before.
void put_peak_holders(const ledger::Reader&, const CallFrames&, Put<model::PeakHolder>);
// Returns the report's part about cuwarden's own pool: the memory that the pool served and holds,
// rescued requests, meshing, and spilled allocations. The figures are sums over all devices; those
// of the pool's memory include page-locked host memory.
model::Pool pool_of(const ledger::Reader&);

}  // namespace cuwarden
