// Marks of the program's steps, which cuwarden.h, the Python module and NVTX ranges make.
#pragma once

#include <string_view>

namespace cuwarden::shim {

// Counts a step of the program that begins now. `name`: its name; empty: none, and that of an
// earlier step stays. Starts no recording: of steps before the first CUDA call, only the number,
// and the time and the name of the last one are kept. All threads may call the function at any
// time. Leaves errno as it was.
void begin_step(std::string_view name = {}) noexcept;

// Ends the part of the run that has the name of the last step with a name. All threads may call the
// function at any time. Leaves errno as it was.
void end_named_step() noexcept;

}  // namespace cuwarden::shim
