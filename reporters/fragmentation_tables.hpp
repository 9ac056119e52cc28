// The tables of a report about memory that is held but cannot be used.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "reporters/call_frames.hpp"
#include "reporters/incident_case.hpp"
#include "reporters/json_stream.hpp"
#include "reporters/slabs.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// By device.
using Fragmentations = std::map<std::int32_t, Fragmentation>;

void write_accounts(const ledger::Reader&, const std::vector<ledger::SeriesView>&,
                    const Fragmentations&, const std::vector<IncidentCase>&, JsonStream&);
void write_fragmentation(const ledger::Reader&, const std::vector<ledger::SeriesView>&,
                         const Fragmentations&, const CallFrames&, JsonStream&);

}  // namespace cuwarden
