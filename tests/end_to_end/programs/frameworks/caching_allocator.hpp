// Stands in for PyTorch's allocator of device memory (libc10_cuda.so).
#pragma once

#include <cstddef>
#include <cstdint>

namespace c10::cuda {

// The allocator's figures of its own memory. reserved: bytes taken from CUDA. allocated: bytes
// handed out. holes, hole_bytes: number and bytes of the free blocks in segments that are partly in
// use. largest_free: bytes of the largest free block.
struct Figures {
  std::size_t reserved = 0, allocated = 0;
  std::size_t holes = 0, hole_bytes = 0, largest_free = 0;
};

// Returns a block of at least `bytes` bytes; null if the device has no memory for it.
void* raw_alloc(std::size_t bytes);
// Takes back a block that raw_alloc() has returned.
void raw_delete(void* block);
// Gives segments in which no block is handed out back to CUDA. Reports nothing to profilers, as in
// PyTorch.
void empty_cache();
// Returns the allocator's present figures.
Figures figures();

}  // namespace c10::cuda
