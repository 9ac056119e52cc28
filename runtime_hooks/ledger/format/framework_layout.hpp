// Figures in the ledger that frameworks, such as PyTorch, give of their own memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

// Figures that a framework, such as PyTorch, gives of its memory, which it takes from CUDA in large
// segments and hands out in blocks. If `stack` is 0, the figures are of one of the framework's
// pools; otherwise of the blocks that this call stack got. A figure of unknown_value is not known.
// A reader may find figures of two moments in one row.
struct FrameworkPool {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::int32_t device;               // CUDA ordinal of the device; -1: host memory
  StringRef framework;               // name of the framework, such as "PyTorch"
  StringRef pool;  // name of the framework's pool; empty: its main pool on the device
  // Row of the incident at which the figures were given; 0: they are the latest figures.
  std::uint32_t incident;
  std::uint32_t stack;                 // the call stack's row in the stacks table; 0: a whole pool
  std::atomic<std::uint64_t> time_ns;  // time of the figures since process start
  std::atomic<std::uint64_t> reserved_bytes;   // bytes that the framework has taken from CUDA
  std::atomic<std::uint64_t> allocated_bytes;  // bytes of the blocks in use
  std::atomic<std::uint64_t> allocated_count;  // number of the blocks in use
  // Most bytes of blocks so far that were in use at one moment.
  std::atomic<std::uint64_t> peak_allocated_bytes;
  // Number and bytes of holes: free blocks in segments of which another part is in use.
  std::atomic<std::uint64_t> hole_count, hole_bytes;
  std::atomic<std::uint64_t> largest_free_bytes;  // bytes of the largest free block
};

}  // namespace cuwarden::ledger
