// Figures in the ledger that frameworks, such as PyTorch, give of their own memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/incident_layout.hpp"
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
  StringRef framework_pool;  // name of the framework's pool; empty: its main pool on the device
  // Row of the incident at which the figures were given; 0: they are the latest figures.
  std::uint32_t incident;
  // The call stack's row in the stacks table, from 1; 0: the figures are of a whole pool, not of
  // one call stack.
  std::uint32_t stack;
  // Time at which the framework gave the figures, in ns since process start.
  std::atomic<std::uint64_t> time_ns;
  std::atomic<std::uint64_t> reserved_bytes;   // bytes that the framework has taken from CUDA
  std::atomic<std::uint64_t> allocated_bytes;  // bytes of the blocks in use
  std::atomic<std::uint64_t> allocated_count;  // number of the blocks in use
  // Most bytes of blocks so far that were in use at one moment.
  std::atomic<std::uint64_t> peak_allocated_bytes;
  // Number and bytes of holes: free blocks in segments of which another part is in use.
  std::atomic<std::uint64_t> hole_count, hole_bytes;
  std::atomic<std::uint64_t> largest_free_bytes;  // bytes of the largest free block
};

// The memory to which a framework's figures belong.
struct FrameworkMemory {
  std::string_view framework;  // name of the framework, such as "PyTorch"
  // Name of the framework's pool; empty: the main pool of the device.
  std::string_view framework_pool{};
  DeviceOrdinal device = no_device;  // device of the memory; no_device: host memory
  // Incident at which the figures are given; 0: none, they are the latest ones.
  IncidentId incident{};
  // Call stack of the blocks that the figures count; 0: they count all blocks.
  StackId stack{};
};
// A framework's figures of its pool of memory, which it has taken from CUDA and hands out in
// blocks. unknown_value: the framework does not give the figure.
struct FrameworkFigures {
  std::uint64_t reserved_bytes = unknown_value;   // bytes that the framework has taken from CUDA
  std::uint64_t allocated_bytes = unknown_value;  // bytes of the blocks that are handed out
  std::uint64_t allocated_count = unknown_value;  // number of blocks that are handed out
  // Highest value of allocated_bytes so far. If the framework does not give this figure,
  // Frameworks::store() stores the highest allocated_bytes of all its calls for the memory.
  std::uint64_t peak_allocated_bytes = unknown_value;
  // Number of free blocks in segments (units that the framework takes from CUDA) that are partly in
  // use.
  std::uint64_t hole_count = unknown_value;
  std::uint64_t hole_bytes = unknown_value;  // bytes of free blocks in segments partly in use
  std::uint64_t largest_free_bytes = unknown_value;  // bytes of the largest free block
};

}  // namespace cuwarden::ledger
