// The facts about the process in the ledger's header, read once from /proc without allocating.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// `pid`: of the process that is recorded, whose memory the caller may share; 0: the caller.
// Fills header().process except for the report's path.
void record_process(Storage&, std::int32_t pid) noexcept;

// "cuwarden-ledger-HOST-START-PID": START in ns since the epoch, so that a reused pid differs.
struct LedgerName {
  char text[256];
};
LedgerName ledger_name(std::int32_t pid) noexcept;

}  // namespace cuwarden::ledger
