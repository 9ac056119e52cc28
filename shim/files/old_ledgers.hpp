// Removes ledgers that killed processes have left. A ledger is the memory-mapped file with the
// allocation records of a process; a process that ends in an orderly way removes its own.
#pragma once

#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::shim {

// Removes old ledgers from the folder in which `own`, the calling process's ledger, lies. Only
// ledgers of dead processes count: of this user, with the same executable, and from this boot of
// the machine and this pid namespace. The `keep` newest of them stay (CUWARDEN_REPORT_KEEP, 1 or
// more). With each ledger, the report that its process had begun or written is removed, too. Does
// nothing if `own` is in memory, without a file. Reads other ledgers by pread(2): a mapping of a
// file that shrinks would raise SIGBUS. Looks at files for 0.2 s at most, since the program's first
// CUDA call waits.
void remove_old_ledgers(const ledger::Writer& own, unsigned keep) noexcept;

}  // namespace cuwarden::shim
