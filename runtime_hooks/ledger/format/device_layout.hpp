// The part of the ledger's layout that describes devices: names, the last reading of each, the
// pool's figures, and memory that the driver took by itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

// Occasion of the last reading of a device's free memory.
enum class ReadingAt : std::uint32_t {
  never,      // the memory was not read so far
  last_call,  // near a recorded call
  exit,       // at the process's end
};
// A device that the process used, and the last reading of its memory.
struct Device {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::int32_t ordinal;              // the device's CUDA ordinal, from 0
  std::uint8_t uuid[16];             // the device's UUID; zeros: unknown
  char name[128];  // the device's name, which ends with a zero byte; empty: unknown
  std::atomic<std::uint32_t> version;  // seqlock: odd while the reading or implicit memory changes
  std::atomic<std::uint32_t> at;       // ReadingAt: the last reading's occasion
  std::atomic<std::uint64_t> time_ns;  // time of the last reading since process start
  // Size and free bytes of the device's memory in the last reading.
  std::atomic<std::uint64_t> total_bytes, free_bytes;
  // Bytes of this process on the device when its memory was last read, which later calls change: of
  // live allocations for which is_taken_at_once() is true, less those in host memory (spill), with
  // what their pages have beside them and with unused memory of cuwarden's pool; and what the
  // driver took by itself (ImplicitBytes::all()).
  std::atomic<std::uint64_t> allocated_when_read_bytes, implicit_when_read_bytes;
  // In the last reading, idle bytes of the process's memory pools and graphs, or unknown_value.
  std::atomic<std::uint64_t> memory_pool_idle_bytes;
  std::atomic<std::uint64_t> other_processes_bytes;  // used by other processes; 0: none or unknown
  // Bytes of live device allocations that are in host memory (spill): now, and the most so far.
  std::atomic<std::uint64_t> spilled_bytes, spilled_peak_bytes;
  std::atomic<std::uint64_t> spilled_count;  // number of allocations that ever got host memory
  // The part of spilled_bytes that is of stream-ordered allocations (cuMemAllocAsync).
  std::atomic<std::uint64_t> spilled_in_stream_order_bytes;
  // Bytes of the device that cuwarden's pool held when last noted, and requested bytes live in it.
  std::atomic<std::uint64_t> arena_held_bytes, arena_live_bytes;
  // Number and bytes of the requests that cuwarden's pool has served so far.
  std::atomic<std::uint64_t> arena_served_count, arena_served_bytes;
  std::atomic<std::uint64_t> arena_returned_bytes;  // bytes that the pool gave back to the driver
  // Pages of addresses that meshing has moved to other memory, and pages whose own memory a moved
  // page came to share. A page counts again each time, so two that come to share memory count 2.
  std::atomic<std::uint64_t> arena_meshed_pages;
  // Bytes that meshing has given back to the device since the process began. They are counted in
  // arena_returned_bytes, too.
  std::atomic<std::uint64_t> arena_meshed_bytes;
  std::atomic<std::uint64_t> arena_pause_ns;  // time for which meshing paused the program
  // Bytes of the device in use just after the process made its first context there, with other
  // processes' memory, less recorded allocations and lent_first_context_bytes. 0: not measured.
  std::atomic<std::uint64_t> used_after_first_context_bytes;
  // Bytes of the device that this process's contexts after the first one take.
  std::atomic<std::uint64_t> context_bytes;
  // Bytes of the device that the driver took for implicit objects.
  std::atomic<std::uint64_t> module_bytes;        // for code
  std::atomic<std::uint64_t> local_memory_bytes;  // for kernels' local memory
  std::atomic<std::uint64_t> heap_bytes;          // for the heap of malloc() in kernels
  std::atomic<std::uint64_t> stream_bytes;        // for streams
  std::atomic<std::uint64_t> graph_bytes;         // for executable graphs
  // Bytes of the first context, and of all further ones, that the driver gave back as it refused a
  // request and that no kernel launch has taken again.
  std::atomic<std::uint64_t> lent_first_context_bytes, lent_context_bytes;
  // Most bytes of local memory that one thread of a kernel needs (ImplicitBytes::largest_local).
  std::atomic<std::uint64_t> largest_local_bytes;
  // Mangled name of the kernel that needs largest_local_bytes; empty: unknown.
  StringRef largest_local_kernel;
};

}  // namespace cuwarden::ledger
