// Finds out, at the end of the process, which allocations no pointer leads to any more.
#pragma once

#include "reporters/words/setting_values.hpp"
#include "runtime_hooks/hooks/call/session.hpp"

namespace cuwarden::shim {

// Sets the mode of all later searches, forgets earlier ones, and notes if a Python interpreter
// runs. To be called when recording starts, also in a forked child. `mode`: the setting
// CUWARDEN_REACHABILITY. `Session`: that of the recording.
void begin_searches(hooks::Session&, ReachabilityMode mode) noexcept;

// Searches this process's memory for pointers to all live allocations, and stores in the ledger for
// each allocation if one was found. For that, allocates a few blocks of the driver's memory and
// frees them again, if the driver is idle. Never fails: if something is missing, the allocations
// are stored as unknown. So are those for which the time was too short: the search ends after two
// seconds, unless CUWARDEN_REACHABILITY is `on`. With `off`, nothing is searched. Nothing is
// searched either while another thread searches; the ledger then says that the time was too short.
// `frame`: __builtin_frame_address(0) of the function that the program has called, which has called
// __builtin_unwind_init(); the stack above it is the program's. `may_ask_driver`: false if the
// driver must not be called now. To be called inside an OwnWork (a scope of cuwarden's own work).
//
// Allocations that find_lost_in_interpreter() has searched for less than 10 s ago keep its results.
// If a Python interpreter has ended, no other allocation is stored as lost: the interpreter has
// freed its objects, and the pointers in them.
void find_lost_allocations(hooks::Session&, const void* frame, bool may_ask_driver) noexcept;

// Searches for pointers to all live allocations, as find_lost_allocations() does, before the
// process's Python interpreter frees its objects. Does nothing while another thread searches. The
// parameters are those of find_lost_allocations().
void find_lost_in_interpreter(hooks::Session&, const void* frame, bool may_ask_driver) noexcept;

}  // namespace cuwarden::shim
