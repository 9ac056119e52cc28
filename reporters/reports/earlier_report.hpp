// The report that a process wrote itself before it died: at an incident, or at its end, without
// symbols, or whole but for the removal of the ledger.
#pragma once

#include <optional>
#include <string>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Returns the path of the report that the process has written already; null if there is none that
// belongs to this user and says itself that it is about this process. Looks at the process's report
// path, report number, pid and start time.
std::optional<std::string> earlier_report(const ledger::ProcessView& process);

}  // namespace cuwarden
