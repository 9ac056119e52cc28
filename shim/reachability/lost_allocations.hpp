// Finds out, at the end of the process, which allocations no pointer leads to any more.
#pragma once

#include <cstdint>

#include "reporters/words/setting_values.hpp"
#include "runtime_hooks/hooks/call/session.hpp"

namespace cuwarden::shim {

// Searches this process's memory for pointers to all live allocations, and stores in the ledger for
// each allocation if one was found. For that, allocates a few blocks of the driver's memory and
// frees them again, if the driver is idle. Never fails: if something is missing, the allocations
// are stored as unknown. `stack_pointer`: the calling thread's stack pointer in the function that
// the program called; the stack above it is the program's. `may_ask_driver`: false if the driver
// must not be called now. `mode`: the setting CUWARDEN_REACHABILITY. To be called inside an OwnWork
// (a scope of cuwarden's own work).
void find_lost_allocations(hooks::Session&, std::uint64_t stack_pointer, bool may_ask_driver,
                           ReachabilityMode mode) noexcept;

}  // namespace cuwarden::shim
