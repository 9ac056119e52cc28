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

// Returns copies of all series of the ledger except the one of the process's RSS. A series is the
// totals and the timeline of one kind of memory on one device. In the copies, counts and live bytes
// come from the second parameter, the exact sums over all groups of allocations, and a peak is
// never less than the live bytes.
std::vector<ledger::SeriesView> all_series(const ledger::Reader&, const ledger::GroupSums&);

// Returns the device's free bytes. These are the bytes of its last reading, corrected by what the
// driver has taken or given back since. For a process that did not end by itself, they are also
// corrected by what it has allocated and freed since. Memory pools and other processes may have
// changed the memory, too. The series are those of all_series(). Means nothing if DeviceView::at is
// `none`.
std::uint64_t free_bytes_now(const ledger::DeviceView&, const std::vector<ledger::SeriesView>&);
// Calls the last parameter, with a row of the report, for each device that the process used. The
// series are those of all_series().
void put_devices(const ledger::Reader&, const std::vector<ledger::SeriesView>&, Put<model::Device>);
// Calls the last parameter, with a row of the report, for each kind of memory on each device: the
// sums of its allocations over the run. The series are those of all_series().
void put_totals(const std::vector<ledger::SeriesView>&, Put<model::Total>);
// Calls the last parameter, with a row of the report, for each span of time of each series. A
// series is a kind of memory on a device, the blocks that frameworks have handed out, or the
// process's resident memory (RSS). Rows of host memory have no device. Implicit memory, such as
// that of contexts and streams (is_implicit()), has no rows.
void put_timeline(const ledger::Reader&, Put<model::Bucket>);
// Calls the last parameter, with a row of the report, for each call stack that held memory when the
// most bytes of its kind were live on the device. Implicit memory (is_implicit()) has no rows. The
// stacks must have been added to the CallFrames before.
void put_peak_holders(const ledger::Reader&, const CallFrames&, Put<model::PeakHolder>);
// Returns the sums of cuwarden's own pool, of rescues, of meshing and of spilled allocations, over
// all devices.
model::Pool pool_of(const ledger::Reader&);

}  // namespace cuwarden
