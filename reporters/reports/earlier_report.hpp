// Finds the report that a process wrote itself before it died. Such a report may lack the names of
// functions. Or it is whole, and the process died before it removed its ledger.
#pragma once

#include <optional>
#include <string>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Returns the path of the report that the process of a ledger has written; null if it is not found.
// Only the path and the number in the report's name that the ledger states are looked at. The file
// must belong to this user, and must name the process's pid and start time.
std::optional<std::string> earlier_report(const ledger::ProcessView& process);

}  // namespace cuwarden
