// Finds the report that a dead process wrote itself before it died. Such a report may lack the
// names of functions; or it is whole, and only the ledger was not removed.
#pragma once

#include <optional>
#include <string>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Returns the path of the report that the process of a ledger has written; null if there is none.
// The file must belong to this user, and must name the process's pid and start time. Looks only at
// the file that the path and the report number in the ledger name.
std::optional<std::string> earlier_report(const ledger::ProcessView& process);

}  // namespace cuwarden
