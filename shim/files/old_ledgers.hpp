// Removes what a program that is killed again and again leaves: CUWARDEN_REPORT_KEEP counts for
// reports that were never made, too.
#pragma once

#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::shim {

// Keeps the `keep` newest of the ledgers that dead processes of the same program left in the folder
// of `own`. Removes the others, with the unfinished reports of their processes. A ledger is removed
// only if it is this user's, names the same executable, this boot of the machine and this pid
// namespace, and its process is gone. Does nothing if `own` is in memory. Never maps another
// process's file, which may shrink.
void remove_old_ledgers(const ledger::Writer& own, unsigned keep) noexcept;

}  // namespace cuwarden::shim
