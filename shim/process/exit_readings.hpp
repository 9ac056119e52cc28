// The last readings of the devices, taken at exit() while the driver still answers.
#pragma once

#include "runtime_hooks/core/wait_budget.hpp"
#include "runtime_hooks/hooks/call/session.hpp"

namespace cuwarden::shim {

// Asks the driver, and NVML where other processes seem to be there, unless the driver might not
// answer: where a device was lost, a thread is inside the driver or left it without returning, or
// the calling thread runs a signal handler, which may have interrupted anything. Asks nothing more
// once the budget is spent. `frame`: of the calling function, by __builtin_frame_address(0).
void take_exit_readings(hooks::Session&, const void* frame, WaitBudget&) noexcept;

}  // namespace cuwarden::shim
