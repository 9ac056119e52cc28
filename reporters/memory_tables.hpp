// The tables of a report about how much memory there is and was, without saying whose.
#pragma once

#include <vector>

#include "reporters/json_stream.hpp"
#include "reporters/live_totals.hpp"
#include "runtime_hooks/ledger/reader.hpp"

namespace cuwarden {

// Without the host's. Of a process that goes on, `totals` has what adds up with its groups.
std::vector<ledger::SeriesView> all_series(const ledger::Reader&, const LiveTotals* totals);

void write_devices(const ledger::Reader&, JsonStream&);
void write_accounts(const ledger::Reader&, const std::vector<ledger::SeriesView>&, JsonStream&);
void write_totals(const std::vector<ledger::SeriesView>&, JsonStream&);
void write_timeline(const ledger::Reader&, JsonStream&);

}  // namespace cuwarden
