// Works out how many bytes of a device are lost to the driver's slabs and rounding, from the
// addresses and sizes of live allocations. A slab is a page of the device (2 MiB) from which the
// driver cuts small requests, its pieces. A slab returns to the device when its last piece is
// freed; until then its free bytes are locked: requests for larger memory cannot use them. The
// driver rounds large requests up to whole pages.
//
// The addresses also show the size of a page, the step to whose multiples pieces are rounded, and
// the size of the largest piece. If the sum of all parts of a device's memory exceeds its used
// bytes, these sizes are wrong.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "reporters/model/fragmentation.hpp"
#include "reporters/model/put.hpp"
#include "reporters/model/row_progress.hpp"
#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/ledger/format/incident_layout.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// A slab with at least one live piece. A slab is a 2 MiB page from which the driver cuts small
// requests, its pieces.
struct LiveSlab {
  std::uint64_t address = 0;  // address at which the slab starts
  // Number of live pieces (small allocations) in the slab, and the sum of the bytes that were
  // requested for them.
  std::uint64_t live_count = 0, live_bytes = 0;
  // Bytes of the slab that its live pieces take: the size of each piece is rounded up to a multiple
  // of the device's Fragmentation::step_bytes.
  std::uint64_t cut_bytes = 0;
  // Size class of the slab in bytes. The class of a piece is its size, rounded up to a power of
  // two. In a Fragmentation, the slab has the class whose pieces have the most live bytes there. In
  // WorstSlabs, it has the class of a piece of average size. 0 only until it is set.
  std::uint64_t class_bytes = 0;
  // Groups of allocations (stack, function, kind, device) with the most live pieces in the slab,
  // most pieces first. 0: there are no more groups. In WorstSlabs, all are 0.
  std::array<GroupId, ledger::slab_group_count> groups{};
};

// All slabs of one size class (LiveSlab::class_bytes) on a device. A slab is a 2 MiB page from
// which the driver cuts small requests.
struct SlabClass {
  std::uint64_t slab_count = 0;  // number of slabs of the size class on the device
  // Number of live pieces (small allocations) in the slabs of the size class, and the sum of the
  // bytes that were requested for them.
  std::uint64_t live_count = 0, live_bytes = 0;
};

// The part of a device's slabs that one group of allocations (stack, function, kind, device)
// occupies. A slab is a 2 MiB page from which the driver cuts small requests, its pieces.
struct SlabHolder {
  // Number of the group's live pieces in slabs, and the sum of the bytes that were requested for
  // them.
  std::uint64_t count = 0, bytes = 0;
  // Unused bytes of slabs that the group's live pieces keep from going back to the device. A slab's
  // unused bytes are divided equally among all of its live pieces.
  std::uint64_t locked_bytes = 0;
};

// The driver's slabs of one device (2 MiB pages from which it cuts small requests), and the bytes
// that are lost to rounding there.
struct Fragmentation {
  // Bytes of a page, the unit that the driver takes from the device: 2 MiB, unless the addresses of
  // allocations show another size.
  std::uint64_t page_bytes = 2 << 20;
  // Bytes to whose multiples the driver rounds up the pieces (small allocations) of a page: 512,
  // unless the addresses of allocations show another size.
  std::uint64_t step_bytes = 512;
  // Bytes of the largest live piece (small allocation) that shares its slab with another; 0: no two
  // share a slab.
  std::uint64_t largest_piece = 0;

  // Slabs (2 MiB pages of small requests) with a live piece, sorted by address.
  std::vector<LiveSlab> slabs;
  // Sums over the slabs of each size class, by the class in bytes (LiveSlab::class_bytes).
  std::map<std::uint64_t, SlabClass> classes;
  // Live pieces of each group of allocations (stack, function, kind, device), by the group's row in
  // the ledger.
  std::map<std::uint32_t, SlabHolder> holders;
  // Unused bytes in all of the device's slabs with a live piece (small allocation).
  std::uint64_t locked_bytes = 0;
  // Bytes by which the driver rounded up live requests: in slabs to multiples of step_bytes,
  // elsewhere to whole pages.
  std::uint64_t rounding_bytes = 0;
};

// Returns the bytes of the largest request that the driver could serve, in whole pages; 0 if it
// could serve none. `free_bytes`: the device's free bytes. `memory_pool_idle_bytes`: unused bytes
// of memory pools (CUmemoryPool), which count as free, because the driver takes them back for other
// requests. `page`: bytes of a page, not 0. Two pages are subtracted, since the driver does not
// hand out a device's last bytes.
inline std::uint64_t largest_request(std::uint64_t free_bytes, std::uint64_t memory_pool_idle_bytes,
                                     std::uint64_t page) {
  const std::uint64_t there = free_bytes + memory_pool_idle_bytes;
  return (there - std::min(there, 2 * page)) / page * page;
}

// Returns each device's slabs (pages of 2 MiB with small requests) and the bytes lost to rounding,
// by CUDA ordinal. They are worked out from the live allocations in the ledger. Only linear memory
// (cuMemAlloc) from the driver counts. Memory pools, cuwarden's own pool and virtual memory are not
// cut from slabs, and the addresses of small arrays are not known. A device without live linear
// memory has no entry. The exception is a device whose memory pools keep unused memory: its entry
// has no slabs. `done`: is called for each record of an allocation, in one pass.
std::map<std::int32_t, Fragmentation> find_fragmentation(
    const ledger::Reader&, RowDone done = [] {});

// Calls `put`, with a row of the report, for each size class of slabs on each device. `by_device`:
// the slabs of each device, by its CUDA ordinal. `Slabs`: Fragmentation or WorstSlabs.
template <class Slabs>
void put_slab_classes(const std::map<std::int32_t, Slabs>& by_device, Put<model::SlabClass> put) {
  for (const auto& [device, all] : by_device) {
    for (const auto& [class_bytes, of] : all.classes)
      put({.device = static_cast<model::Id>(device),
           .class_bytes = class_bytes,
           .slab_count = of.slab_count,
           .live_count = of.live_count,
           .live_bytes = of.live_bytes});
  }
}

}  // namespace cuwarden
