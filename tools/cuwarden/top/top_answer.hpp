// Makes the rows that `cuwarden top` shows, as text or JSON, from the numbers of watched processes.
#pragma once

#include <sys/types.h>

#include "runtime_hooks/ledger/read/reader.hpp"
#include "tools/cuwarden/top/top_rows.hpp"
#include "tools/cuwarden/top/top_sample.hpp"

namespace cuwarden {

// A process that `cuwarden top` shows. The pointers are never null, and are not owned.
struct WatchedProcess {
  pid_t pid = 0;
  const ledger::Reader* reader = nullptr;  // reads the process's ledger
  const Recent* recent = nullptr;          // the last samples; at least one
  const GrowingGroups* growing = nullptr;  // call stacks whose memory keeps growing
  bool ended = false;  // true if the process has ended; no more samples are added
};

// Returns an object for the output of `cuwarden top --json` with this moment's time and cuwarden's
// version, but without processes.
TopAnswer new_answer();
// Adds to the answer one row for the process, one for each of its devices, and one for the totals
// of each kind of memory and device.
void add_process(const WatchedProcess&, TopAnswer&);
// Returns the row of a group: all allocations of the process with one call stack, kind of memory
// and device. The names of the code that makes the allocations are left null.
StackRow stack_row(const WatchedProcess&, const GroupSample&);

}  // namespace cuwarden
