// The last readings of the devices, taken at exit() while the driver still answers.
#pragma once

#include "runtime_hooks/core/wait_budget.hpp"
#include "runtime_hooks/hooks/call/session.hpp"

namespace cuwarden::shim {

// Reads all devices for the last time, and asks NVML if other processes seem to be there. Does
// nothing if the driver might not answer: a device was lost, a thread is inside the driver or left
// it by a jump, or the calling thread runs a signal handler. Asks nothing more once the budget is
// spent. `frame`: __builtin_frame_address(0) of the calling function.
void take_exit_readings(hooks::Session&, const void* frame, WaitBudget&) noexcept;

}  // namespace cuwarden::shim
