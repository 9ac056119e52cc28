// The facts about the process in the ledger's header, read once from /proc without allocating.
#pragma once

#include <cstdint>

#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// Stores facts about the recorded process in the ledger's header (Header::process), all but the
// report's path. If the process's start is not known, the present time is stored as
// Process::start_realtime_ns and start_monotonic_ns. Other facts that cannot be read stay 0 or
// empty. `pid`: pid of the recorded process, if the caller is a vfork child that shares that
// process's memory; 0: the calling process.
void record_process(Storage&, std::int32_t pid) noexcept;

// The file name of a ledger, without a folder: "cuwarden-ledger-HOST-START-PID". START is the
// process's start in nanoseconds since 1970, so that names differ when a pid is reused. If the
// start is not known, START is the time at which the name is made.
struct LedgerName {
  char text[256];  // file name of the ledger, with a zero byte at its end
};
// Returns the file name for the ledger of the process `pid`; 0: the calling process.
LedgerName ledger_name(std::int32_t pid) noexcept;

}  // namespace cuwarden::ledger
