// The tables of a report about how much memory there is and was, without saying whose.
#pragma once

#include <vector>

#include "reporters/json_stream.hpp"
#include "runtime_hooks/ledger/read/group_sums.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Without the host's; with the sums of their groups.
std::vector<ledger::SeriesView> all_series(const ledger::Reader&, const ledger::GroupSums&);

void write_devices(const ledger::Reader&, JsonStream&);
void write_totals(const std::vector<ledger::SeriesView>&, JsonStream&);
void write_timeline(const ledger::Reader&, JsonStream&);

}  // namespace cuwarden
