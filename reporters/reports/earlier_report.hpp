// Finds the report that a dead process wrote itself before it died. Such a report may lack the
// names of functions; or it is whole, and only the ledger was not removed.
#pragma once

#include <optional>
#include <string>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Returns the path of the report that the process of a ledger has written itself; null if no such
// file is found. The file must belong to this user, and must name the process's pid and start time.
// Only the path and the report number that the ledger gives are looked at.
std::optional<std::string> earlier_report(const ledger::ProcessView& process);

}  // namespace cuwarden
