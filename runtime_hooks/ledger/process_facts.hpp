// What the ledger says about its process, read once from /proc without allocating.
#pragma once

#include <string_view>

#include "runtime_hooks/ledger/storage.hpp"

namespace cuwarden::ledger {

// Fills header().process except for the report's path.
void record_process(Storage&) noexcept;

// "cuwarden-ledger-HOST-START-PID": START in ns since the epoch, so that a reused pid differs.
struct LedgerName {
  char text[256];
};
LedgerName ledger_name() noexcept;

}  // namespace cuwarden::ledger
