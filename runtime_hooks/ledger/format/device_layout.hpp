// The part of the ledger's layout that describes devices: names, the last reading of each, the
// pool's figures, and memory that the driver took by itself.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

// The occasion on which a device's free memory was last read.
enum class ReadingAt : std::uint32_t {
  never,      // the device's memory was not read so far
  last_call,  // the device's memory was last read during a recorded call
  exit,       // the device's memory was last read at the process's end
};
// A device that the process used, and the last reading of its memory.
struct Device {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::int32_t ordinal;              // the device's CUDA ordinal, from 0
  std::uint8_t uuid[16];             // the device's UUID; zeros: unknown
  char name[128];  // the device's name, which ends with a zero byte; empty: unknown
  // Seqlock of the figures of the last reading of the device's memory, of other_processes_bytes,
  // and of the bytes that the driver took by itself: odd while they change.
  std::atomic<std::uint32_t> version;
  std::atomic<std::uint32_t> at;  // ReadingAt: occasion of the last reading of the device's memory
  // Time of the last reading of the device's memory, in ns since process start.
  std::atomic<std::uint64_t> time_ns;
  // Size and free bytes of the device's memory in the last reading.
  std::atomic<std::uint64_t> total_bytes, free_bytes;
  // Bytes of the device that this process occupied when the device's memory was last read.
  // `allocated_when_read_bytes`: live allocations of the kinds for which is_taken_at_once() is
  // true, without their parts in host memory (spill). Bytes locked in their slabs or lost to
  // rounding are included, and so is unused memory of cuwarden's pool. `implicit_when_read_bytes`:
  // memory that the driver took by itself, ImplicitBytes::all().
  std::atomic<std::uint64_t> allocated_when_read_bytes, implicit_when_read_bytes;
  // Bytes that the process's memory pools and graphs kept unused when the device's memory was last
  // read; unknown_value: not known.
  std::atomic<std::uint64_t> memory_pool_idle_bytes;
  // Bytes of the device that other processes use; 0: none or unknown.
  std::atomic<std::uint64_t> other_processes_bytes;
  // Bytes of live device allocations that are in host memory (spill): now, and the most so far.
  std::atomic<std::uint64_t> spilled_bytes, spilled_peak_bytes;
  std::atomic<std::uint64_t> spilled_count;  // number of allocations that were spilled so far
  // The part of spilled_bytes that is of stream-ordered allocations (cuMemAllocAsync).
  std::atomic<std::uint64_t> spilled_in_stream_order_bytes;
  // Bytes of the device that cuwarden's pool holds, and bytes requested for the live allocations in
  // the pool. Both are brought up to date from time to time.
  std::atomic<std::uint64_t> arena_held_bytes, arena_live_bytes;
  // Number and bytes of the requests that cuwarden's pool has served so far.
  std::atomic<std::uint64_t> arena_served_count, arena_served_bytes;
  // Bytes that cuwarden's pool gave back to the driver so far.
  std::atomic<std::uint64_t> arena_returned_bytes;
  // Number of times that meshing made a page of addresses share memory with another page. When two
  // pages come to share memory, both count.
  std::atomic<std::uint64_t> arena_meshed_pages;
  // Bytes that meshing has given back to the device since the process began. They are counted in
  // arena_returned_bytes, too.
  std::atomic<std::uint64_t> arena_meshed_bytes;
  std::atomic<std::uint64_t> arena_pause_ns;  // nanoseconds of all pauses by meshing so far
  std::atomic<std::uint64_t> arena_pauses;    // number of pauses by meshing so far
  // Nanoseconds that meshing took outside of its pauses so far: for plans, to prepare memory, and
  // to give it back.
  std::atomic<std::uint64_t> arena_plan_ns, arena_prepare_ns, arena_release_ns;
  // Bytes of the device that were in use just after the process's first context came up there.
  // Memory of other processes is included; recorded allocations and lent_first_context_bytes are
  // not. 0: not measured.
  std::atomic<std::uint64_t> used_after_first_context_bytes;
  // Bytes of the device that this process's contexts after the first one take.
  std::atomic<std::uint64_t> context_bytes;
  // Bytes of the device that the driver took for loaded code; 0: none was measured.
  std::atomic<std::uint64_t> module_bytes;
  // Bytes of the device that the driver took for kernels' local memory; 0: none was measured.
  std::atomic<std::uint64_t> local_memory_bytes;
  // Bytes of the device that the driver took for the heap of malloc() in kernels; 0: none was
  // measured.
  std::atomic<std::uint64_t> heap_bytes;
  // Bytes of the device that the driver took for streams; 0: none was measured.
  std::atomic<std::uint64_t> stream_bytes;
  // Bytes of the device that the driver took for executable graphs; 0: none was measured.
  std::atomic<std::uint64_t> graph_bytes;
  // Bytes of the process's first context on the device, and of its further contexts there, that the
  // driver gave back to the device when it refused a request. Bytes that a kernel launch has taken
  // again since do not count.
  std::atomic<std::uint64_t> lent_first_context_bytes, lent_context_bytes;
  // Most bytes of local memory that one thread of a kernel needs (ImplicitBytes::largest_local).
  std::atomic<std::uint64_t> largest_local_bytes;
  // Mangled name of the kernel that needs most local memory (largest_local_bytes); empty: unknown.
  StringRef largest_local_kernel;
};

// Figures of cuwarden's pool on one device: the present ones, and totals since the process began.
struct ArenaUse {
  // `held_bytes`: bytes of the device that cuwarden's pool holds at present. `live_bytes`: sum of
  // the requested sizes of the live allocations in the pool.
  std::uint64_t held_bytes = 0, live_bytes = 0;
  // Number and bytes of the requests that cuwarden's pool has served since the process began.
  std::uint64_t served_count = 0, served_bytes = 0;
  // Bytes that cuwarden's pool gave back to the device since the process began, including those
  // that meshing saved. Memory of contexts that ended does not count.
  std::uint64_t returned_bytes = 0;
  // Number of pages that meshing has made share memory since the process began. When a page joins
  // the memory of a page that shared none, both count. A page counts again each time it is moved.
  std::uint64_t meshed_pages = 0;
  std::uint64_t meshed_bytes = 0;  // bytes that meshing has given back to the device so far
  std::uint64_t pause_ns = 0;      // nanoseconds for which meshing has paused the program so far
  std::uint64_t pauses = 0;        // number of pauses of the program that meshing has made so far
  // Nanoseconds that meshing took outside of its pauses so far: for plans, to prepare memory, and
  // to give it back.
  std::uint64_t plan_ns = 0, prepare_ns = 0, release_ns = 0;

  // Returns the bytes that the pool holds and that no live allocation uses; 0 if a damaged ledger
  // has more live bytes than held bytes.
  std::uint64_t unused_bytes() const { return held_bytes - std::min(held_bytes, live_bytes); }
};

}  // namespace cuwarden::ledger
