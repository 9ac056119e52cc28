// The tables of a report about memory that is held but cannot be used.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "reporters/json_stream.hpp"
#include "reporters/slabs.hpp"
#include "runtime_hooks/ledger/reader.hpp"

namespace cuwarden {

// By device.
using Fragmentations = std::map<std::int32_t, Fragmentation>;

void write_accounts(const ledger::Reader&, const std::vector<ledger::SeriesView>&,
                    const Fragmentations&, JsonStream&);
// `is_running`: the ledger is of a process that goes on.
void write_fragmentation(const ledger::Reader&, const std::vector<ledger::SeriesView>&,
                         const Fragmentations&, bool is_running, JsonStream&);

}  // namespace cuwarden
