// The report that a process wrote itself before it died: at an incident, or at its end, without
// symbols, or whole but for the removal of the ledger.
#pragma once

#include <optional>
#include <string>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Its path. Null where there is none that belongs to this user and says itself that it is about
// this process. Of the process its report's path and number, its pid and its start are looked at.
std::optional<std::string> earlier_report(const ledger::ProcessView& process);

}  // namespace cuwarden
