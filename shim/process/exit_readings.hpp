// The last readings of the devices (free memory and other figures of the driver), taken in exit()
// while the driver still answers.
#pragma once

#include "runtime_hooks/core/wait_budget.hpp"
#include "runtime_hooks/hooks/call/session.hpp"

namespace cuwarden::shim {

// True if the driver will probably answer now: no device is lost, no other thread stays inside the
// driver, and the calling thread's stack has no frame of the driver or of a signal handler. False
// also if that stack cannot be walked to its end. Waits up to 20 ms for threads inside the driver,
// or less if the WaitBudget has less left. Does not subtract the wait from that budget. `frame`:
// __builtin_frame_address(0) of the calling function, from which the stack is walked.
bool may_ask_driver(hooks::Session&, const void* frame, const WaitBudget&) noexcept;

// Asks the driver for the last time, in exit(), how much memory of each device is free, and writes
// the answers to the ledger. Asks NVML for the memory of other processes if more than 1 GiB in use
// on a device is unexplained.
//
// Asks nothing if the driver might not answer, in the cases in which may_ask_driver() returns
// false. Waits up to 20 ms for threads inside the driver. `frame`: __builtin_frame_address(0) of
// the calling function, from which the stack is searched for frames of the driver and of signal
// handlers. `WaitBudget`: time that the end of the process may still take. The function subtracts
// its own time from the budget, and asks nothing more once none is left.
void take_exit_readings(hooks::Session&, const void* frame, WaitBudget&) noexcept;

}  // namespace cuwarden::shim
