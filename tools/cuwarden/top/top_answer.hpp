// Makes the rows that `cuwarden top` shows, as text or JSON, from the numbers of watched processes.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "runtime_hooks/ledger/read/reader.hpp"
#include "tools/cuwarden/top/recent_rates.hpp"
#include "tools/cuwarden/top/top_growth.hpp"
#include "tools/cuwarden/top/top_json.hpp"
#include "tools/cuwarden/top/top_sample.hpp"

namespace cuwarden {

// A process that `cuwarden top` shows. The objects that it points to must outlive it.
struct WatchedProcess {
  pid_t pid = 0;  // id of the process in the pid namespace of this command
  // Reads the ledger of the process. Not owned; not null when the object is used.
  const ledger::Reader* reader = nullptr;
  // The last samples (numbers read from the ledger) of the process; at least one. Not owned; not
  // null when the object is used.
  const Recent* recent = nullptr;
  // Call stacks of the process whose memory keeps growing. Not owned; not null when the object is
  // used.
  const GrowingGroups* growing = nullptr;
  bool ended = false;  // true once the process was found to have ended
  // Name of the user as whom the process runs; empty: unknown. The text is not owned.
  std::string_view user{};
  model::Figure rank{};  // rank of the process in its job, from 0; null: unknown
};

// Returns an answer (all that `cuwarden top` shows at one moment) with cuwarden's version and the
// present time, but without processes.
TopAnswer new_answer();
// Adds the rows of a process to the answer of `cuwarden top`. The process gets one row, and each of
// its devices gets one. Each kind of memory on each device also gets one, with the kind's totals
// there. Adds no call stacks.
void add_process(const WatchedProcess&, TopAnswer&);
// Returns the row of a group, which is all of the process's allocations with one call stack,
// function, kind of memory and device. `GroupSample`: the group's numbers in the newest sample. The
// row's `api` and `where`, which name the code that makes the allocations, are null; the caller
// sets them.
StackRow stack_row(const WatchedProcess&, const GroupSample&);

}  // namespace cuwarden
