// Removes what a program that is killed again and again leaves: CUWARDEN_REPORT_KEEP counts for
// reports that were never made, too.
#pragma once

#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::shim {

// Of the ledgers in the folder of `own` that dead processes of the same program left, keeps the
// `keep` newest, and removes the others with what their processes had written of a report. A ledger
// is removed only where it is this user's, names the same executable, this boot of the machine and
// this pid namespace, and its process is gone; nothing is done for a ledger in memory. Never maps
// another process's file, which may shrink.
void remove_old_ledgers(const ledger::Writer& own, unsigned keep) noexcept;

}  // namespace cuwarden::shim
