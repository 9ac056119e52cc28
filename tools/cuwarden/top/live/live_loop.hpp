// The live view of `cuwarden top` on a terminal.
#pragma once

#include <sys/types.h>

#include <memory>

#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/output/terminal.hpp"

namespace cuwarden {

// Shows the live view until a key or a signal ends it. `pid`: id of the process whose page is shown
// at first; 0: the list of all processes is shown. `LedgerFile`: that process's ledger; null if
// `pid` is 0. Returns the signal by which the command must end; 0: a key ended the view, or the
// terminal no longer exists.
int show_live(Terminal&, pid_t pid, std::unique_ptr<LedgerFile>);

}  // namespace cuwarden
