// The facts about the process in the ledger's header, read once from /proc without allocating.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// Fills the facts about the process in the ledger's header (Header::process), except for the
// report's path. `pid`: the recorded process; 0: the calling one. They differ if the caller was
// made by vfork and shares the recorded process's memory.
void record_process(Storage&, std::int32_t pid) noexcept;

// The file name of a ledger: "cuwarden-ledger-HOST-START-PID". START is in nanoseconds since 1970,
// so that names differ when a pid is reused.
struct LedgerName {
  char text[256];
};
// Returns the file name for the ledger of the process `pid`; 0: the calling process.
LedgerName ledger_name(std::int32_t pid) noexcept;

}  // namespace cuwarden::ledger
