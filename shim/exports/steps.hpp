// Marks of the program's steps, which cuwarden.h, the Python module and NVTX ranges make.
#pragma once

namespace cuwarden::shim {

// Counts a step of the program that begins now. Starts no recording: of steps before the first CUDA
// call, only the number and the time of the last one are kept. All threads may call the function at
// any time. Leaves errno as it was.
void begin_step() noexcept;

}  // namespace cuwarden::shim
