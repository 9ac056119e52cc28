// The name of a process's ledger in its folder.
#pragma once

#include <cstdint>

namespace cuwarden::ledger {

// The file name of a ledger, without a folder: "cuwarden-ledger-HOST-START-PID". START is the
// process's start in nanoseconds since 1970, so that names differ when a pid is reused. If the
// start is not known, START is the time at which the name is made.
struct LedgerName {
  char text[256];  // file name of the ledger, with a zero byte at its end
};
// Returns the file name for the ledger of the process `pid`; 0: the calling process.
LedgerName ledger_name(std::int32_t pid) noexcept;

}  // namespace cuwarden::ledger
