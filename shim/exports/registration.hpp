// Marks of the program's steps, which cuwarden.h and NVTX ranges make.
#pragma once

namespace cuwarden::shim {

// Counts a step of the program that begins now. Starts no recording: steps before the first CUDA
// call are counted once there is a ledger. Leaves errno as it was.
void begin_step() noexcept;

}  // namespace cuwarden::shim
