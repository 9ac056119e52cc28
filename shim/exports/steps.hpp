// Marks of the program's steps, which cuwarden.h, the Python module and NVTX ranges make.
#pragma once

#include <string_view>

namespace cuwarden::shim {

// Counts a step of the program that begins now. `name`: the step's name; empty: the step has none,
// and the latest named step goes on. Does not start recording. Before the first CUDA call, only the
// number of steps is kept, with the start of the last step and the latest name. All threads may
// call the function at any time. Leaves errno as it was.
void begin_step(std::string_view name = {}) noexcept;

// Ends the named step that is under way, if there is one: later allocations belong to no named
// step. All threads may call the function at any time. Leaves errno as it was.
void end_named_step() noexcept;

}  // namespace cuwarden::shim
