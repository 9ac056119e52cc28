// Chooses the folder of this process's ledger.
#pragma once

#include <string>
#include <string_view>

#include "runtime_hooks/ledger/write/writer.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Makes the ledger in the first of these folders that works: CUWARDEN_LEDGER_DIR, the report's
// folder, $TMPDIR, /dev/shm, /tmp. If none works, the ledger is in memory. Warns if
// CUWARDEN_LEDGER_DIR does not work. Returns null if there is no memory.
ledger::Writer* make_ledger(const Settings&, const std::string& report_path, int pid);

// Returns the end of an error line about a report that could not be written: it says where the
// ledger stays. Empty if the ledger has no file.
std::string where_the_records_stay(std::string_view ledger_path);

// Warns in one line that nothing is recorded any more (`stopped` is true), or that some allocations
// are not recorded. If the ledger could not grow, the line names the operation that the system
// refused.
void say_ledger_is_incomplete(ledger::Writer&, bool stopped) noexcept;

// Warns in one line that the program is about to install a seccomp filter on itself, and where the
// ledger stays.
void say_of_confinement(std::string_view ledger_path) noexcept;

}  // namespace cuwarden::shim
