// Chooses the folder of this process's ledger.
#pragma once

#include <string>
#include <string_view>

#include "runtime_hooks/ledger/write/writer.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// In CUWARDEN_LEDGER_DIR, beside the report, in $TMPDIR, /dev/shm or /tmp: the first that works,
// with a warning where the folder that was asked for does not. Null: no memory even.
ledger::Writer* make_ledger(const Settings&, const std::string& report_path, int pid);

// Returns the end of an error line about a report that could not be written: it says where the
// ledger stays. Empty if the ledger has no file.
std::string where_the_records_stay(std::string_view ledger_path);

// A line of warning: nothing is recorded any more (`stopped`), or not all that there is. The line
// names the refused operation where the ledger could not grow for that.
void say_ledger_is_incomplete(ledger::Writer&, bool stopped) noexcept;

// A line of warning: the program is about to install a seccomp filter on itself.
void say_of_confinement(std::string_view ledger_path) noexcept;

}  // namespace cuwarden::shim
