// Records the reports that PyTorch's allocator of device memory makes to its profiler: the bytes
// that it has taken from CUDA and handed out, and the blocks that it hands out.
#pragma once

#include <cstdint>

#include "runtime_hooks/hooks/call/session.hpp"

namespace cuwarden::hooks {

// A block of device memory that PyTorch's allocator hands out or gets back, and the allocator's
// figures afterwards.
struct PyTorchBlock {
  std::uint64_t address = 0;  // address of the block
  // Size of the block if the allocator hands it out; minus its size if it comes back. 0: there is
  // no block, only figures.
  std::int64_t bytes = 0;
  std::uint64_t allocated_bytes = 0;  // bytes of the device's blocks that are handed out
  std::uint64_t reserved_bytes = 0;   // bytes that the allocator has taken from CUDA on the device
  DeviceOrdinal device;               // device of the block
};

// Stores the figures of PyTorch's allocator in the ledger. If blocks are recorded
// (Session::records_blocks), also records the block with its call stack, or ends its record.
// `frame`: __builtin_frame_address(0) of the function that PyTorch has called. The calling thread
// holds the lock of PyTorch's allocator. Leaves errno as it was.
//
// Once the process's Python interpreter has begun to end, ignores blocks that come back, until a
// block is handed out: the interpreter's end frees them, not a line of the program. The ledger thus
// keeps them as live.
void pytorch_reports(Session&, const void* frame, const PyTorchBlock&) noexcept;

}  // namespace cuwarden::hooks
