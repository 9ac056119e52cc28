// Stands in for PyTorch's allocator of device memory (libc10_cuda.so).
#pragma once

#include <cstddef>
#include <cstdint>

namespace c10::cuda {

// Figures that the allocator has of its own memory.
struct Figures {
  std::size_t reserved = 0, allocated = 0;
  std::size_t holes = 0, hole_bytes = 0, largest_free = 0;  // holes: in segments partly in use
};

// Returns a block of at least `bytes` bytes; null if the device has no memory for it.
void* raw_alloc(std::size_t bytes);
void raw_delete(void* block);
// Gives segments back in which no block is handed out. Reports nothing, as PyTorch.
void empty_cache();
Figures figures();

}  // namespace c10::cuda
