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

}  // namespace cuwarden::ledger
