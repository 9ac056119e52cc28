// Figures of the memory that the pool holds for a context or a device.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cuwarden::pool {

// Figures of an arena (the pool's memory for one context), or their sum over all arenas of a
// device. held_bytes, live_bytes, idle_bytes, partly_idle_bytes and evicted_bytes are the present
// values. All others but differing_bytes and unshared_bytes are totals since the process began.
struct ArenaCounts {
  std::uint64_t held_bytes = 0;  // Bytes of device memory that the arena holds now.
  // Bytes of the blocks that the program has not freed: the sizes that it asked for.
  std::uint64_t live_bytes = 0;
  // Bytes of device memory without a block that the arena holds and can give back to the driver at
  // once: by give_back() or give_back_start_memory().
  std::uint64_t idle_bytes = 0;
  // Bytes of pages without a block that cannot be given back alone, because they were mapped in one
  // piece with pages that hold blocks. Meshing can give them back. Pages that share memory, and
  // those of evicted runs, do not count.
  std::uint64_t partly_idle_bytes = 0;
  // Bytes of host memory to which meshing has moved blocks that it could not bring back. live_bytes
  // counts these blocks; held_bytes does not count this memory.
  std::uint64_t evicted_bytes = 0;
  // Number of blocks (one for each request) that the pool ever handed out, and the sum of the bytes
  // that these requests asked for.
  std::uint64_t served_count = 0, served_bytes = 0;
  // Bytes of memory that the pool ever gave back to the driver, including those that meshing saved.
  // Memory that was freed because its context ended does not count.
  std::uint64_t returned_bytes = 0;
  // Pages of addresses that meshing has moved to other memory, and pages whose own memory a moved
  // page came to share. A page counts each time that this happens to it.
  std::uint64_t meshed_pages = 0;
  std::uint64_t meshed_bytes = 0;  // bytes of device memory that meshing saved
  std::uint64_t pause_ns = 0;      // nanoseconds for which meshing has paused the program
  std::uint64_t pauses = 0;        // number of pauses of the program that meshing has made
  // Nanoseconds of meshing outside of its pauses. `plan_ns`: for plans. `prepare_ns`: for second
  // addresses of memory, and for new memory. `release_ns`: for giving both back.
  std::uint64_t plan_ns = 0, prepare_ns = 0, release_ns = 0;
  // Bytes of all lost runs. A run is a group of pages whose memory is given back together. It is
  // lost if meshing unmapped its pages for a move, the move failed, and the driver refused to map
  // the old memory again at one or more pages. Blocks of the program in these pages have no memory
  // any more. 0: no run is lost.
  std::uint64_t lost_bytes = 0;
  // Number of pages whose blocks were looked at to plan meshing. A page counts each time that it is
  // looked at.
  std::uint64_t planned_pages = 0;
  // Not 0 once meshing has found wrong contents: at a second address of a page of memory, or in a
  // copy. The value is the size of that page. No block of the arena is moved from then on.
  std::uint64_t differing_bytes = 0;
  // Not 0 if the last test of a second address has found that the address takes memory of its own,
  // or that the driver refuses it. The value is the bytes that were tested. Nothing was moved then.
  std::uint64_t unshared_bytes = 0;

  // Returns the bytes of the arena's memory, on the device and the host, that no live block takes:
  // the most that meshing can save.
  std::uint64_t bytes_without_blocks() const noexcept {
    const std::uint64_t all = held_bytes + evicted_bytes;
    return all - std::min(all, live_bytes);
  }
};

}  // namespace cuwarden::pool
