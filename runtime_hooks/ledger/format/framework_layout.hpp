// Figures in the ledger that frameworks, such as PyTorch, give of their own memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

// Figures of one pool of memory, which a framework takes from CUDA in large segments and hands out
// in blocks; or, if `stack` is not 0, of the blocks that one call stack has got. The framework
// gives the figures itself. Readers may meet figures of two moments in one row. A figure that is
// not known is unknown_value.
struct FrameworkPool {
  std::atomic<std::uint32_t> state;    // 1: readers may use the row; 0: not filled in yet
  std::int32_t device;                 // CUDA ordinal of the device; -1: host memory
  StringRef framework;                 // name of the framework, such as "PyTorch"
  StringRef pool;                      // name of the pool; empty: the main one on the device
  std::uint32_t incident;              // incident at which the figures were given; 0: the latest
  std::uint32_t stack;                 // row of the stacks table; 0: figures of a whole pool
  std::atomic<std::uint64_t> time_ns;  // time of the figures since process start
  std::atomic<std::uint64_t> reserved_bytes;   // bytes that the framework has taken from CUDA
  std::atomic<std::uint64_t> allocated_bytes;  // bytes of the blocks that it has handed out
  std::atomic<std::uint64_t> allocated_count;  // number of these blocks
  // Most bytes of blocks so far.
  std::atomic<std::uint64_t> peak_allocated_bytes;
  // Free blocks (holes) in segments of which another part is in use: their number and bytes.
  std::atomic<std::uint64_t> hole_count, hole_bytes;
  std::atomic<std::uint64_t> largest_free_bytes;  // bytes of the largest free block
};

}  // namespace cuwarden::ledger
