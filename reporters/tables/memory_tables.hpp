// Reads the report's tables about how much memory there is and was from a ledger.
#pragma once

#include <vector>

#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/call_frames.hpp"
#include "runtime_hooks/ledger/read/group_sums.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Returns the ordinal for the report; null for the host, and for a number that no device can have.
model::MaybeId device_id(DeviceOrdinal);

// Returns the series of all kinds of memory but the host's RSS, with the sums of their groups.
std::vector<ledger::SeriesView> all_series(const ledger::Reader&, const ledger::GroupSums&);

void put_devices(const ledger::Reader&, Put<model::Device>);
void put_totals(const std::vector<ledger::SeriesView>&, Put<model::Total>);
void put_timeline(const ledger::Reader&, Put<model::Bucket>);
void put_peak_holders(const ledger::Reader&, const CallFrames&, Put<model::PeakHolder>);
model::Pool pool_of(const ledger::Reader&);

}  // namespace cuwarden
