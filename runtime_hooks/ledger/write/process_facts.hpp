// The facts about the process in the ledger's header, read once from /proc without allocating.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// Fills header().process, except for the report's path. `pid`: the recorded process, with which the
// caller may share its memory (vfork); 0: the calling process.
void record_process(Storage&, std::int32_t pid) noexcept;

// The file name of a ledger: "cuwarden-ledger-HOST-START-PID". START is in nanoseconds since 1970,
// so that names differ when a pid is reused.
struct LedgerName {
  char text[256];
};
LedgerName ledger_name(std::int32_t pid) noexcept;

}  // namespace cuwarden::ledger
