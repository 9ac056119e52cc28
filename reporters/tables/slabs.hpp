// Works out how many bytes of a device are lost to the driver's slabs and rounding, from the
// addresses and sizes of live allocations. A slab is a page of the device (2 MiB) from which the
// driver cuts small requests, its pieces. A slab returns to the device when its last piece is
// freed; until then its free bytes are locked: other requests cannot use them. The driver rounds
// large requests up to whole pages.
//
// The size of a page, the step whose multiples pieces take, and the size of the largest piece are
// taken from the addresses. If the sum of all bytes is above the device's used bytes, they are
// wrong.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "reporters/model/fragmentation.hpp"
#include "reporters/model/put.hpp"
#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// A slab of the driver with at least one live piece.
struct LiveSlab {
  std::uint64_t address = 0;  // address at which the slab starts
  // Number of live pieces (small allocations) in the slab, and their bytes as requested.
  std::uint64_t live_count = 0, live_bytes = 0;
  // Bytes of the slab that its live pieces take: the size of each piece is rounded up to a multiple
  // of the device's Fragmentation::step_bytes.
  std::uint64_t cut_bytes = 0;
  // Size class of the slab in bytes, a power of two: the rounded-up size of the pieces that have
  // most of the live bytes (in WorstSlabs, of the average piece).
  std::uint64_t class_bytes = 0;
};

// All slabs of one size class on a device: their number, the number of live pieces (small
// allocations) in them, and the requested bytes of these pieces.
struct SlabClass {
  std::uint64_t slab_count = 0;  // number of slabs of the class
  // Number of live pieces (small allocations) in the slabs, and their bytes as requested.
  std::uint64_t live_count = 0, live_bytes = 0;
};

// The live pieces in slabs of one group of allocations (stack, function, kind, device): their
// number, their bytes, and the unused bytes of the slabs that they keep from going back to the
// device (lock). The unused bytes of a slab are divided equally among its live pieces.
struct SlabHolder {
  // Number and bytes of the group's live pieces (small allocations) in slabs.
  std::uint64_t count = 0, bytes = 0;
  // Unused bytes of the slabs that these pieces keep from going back to the device. A slab's unused
  // bytes count in equal parts for each of its live pieces.
  std::uint64_t locked_bytes = 0;
};

// The driver's slabs of one device, and the bytes that are lost to rounding there.
struct Fragmentation {
  // Bytes of a page, the unit that the driver takes from the device. The driver's usual size,
  // unless the addresses of allocations show another one.
  std::uint64_t page_bytes = 2 << 20;
  // Bytes to whose multiples the driver rounds up the pieces (small allocations) of a page. The
  // driver's usual size, unless the addresses of allocations show another one.
  std::uint64_t step_bytes = 512;
  // Bytes of the largest live piece (small allocation) that shares its slab with another; 0: no two
  // share a slab.
  std::uint64_t largest_piece = 0;

  // Slabs (2 MiB pages of small requests) with a live piece, sorted by address.
  std::vector<LiveSlab> slabs;
  // Sums over the slabs of each size class, by the class in bytes.
  std::map<std::uint64_t, SlabClass> classes;
  // Live pieces of each group of allocations, by the group's row in the ledger.
  std::map<std::uint32_t, SlabHolder> holders;
  // Unused bytes in slabs that have a live piece (small allocation).
  std::uint64_t locked_bytes = 0;
  // Bytes by which the driver rounded live requests up: to multiples of step_bytes in slabs, to
  // whole pages otherwise.
  std::uint64_t rounding_bytes = 0;
};

// Returns the bytes of the largest request that the driver could serve, in whole pages. Idle memory
// of memory pools (CUmemoryPool) counts as free, because the driver takes it back for other
// requests. Two pages are subtracted: the driver does not hand out a device's last bytes. `page`:
// bytes of a page, not 0.
inline std::uint64_t largest_request(std::uint64_t free_bytes, std::uint64_t memory_pool_idle_bytes,
                                     std::uint64_t page) {
  const std::uint64_t there = free_bytes + memory_pool_idle_bytes;
  return (there - std::min(there, 2 * page)) / page * page;
}

// Returns, by device ordinal, the driver's slabs and the bytes by which the driver rounds requests
// up, from the live allocations in the ledger. Only linear memory (cuMemAlloc) from the driver
// counts: memory pools, cuwarden's own pool and virtual memory are not cut from slabs, and the
// addresses of small arrays are not known. A device without linear memory has an entry without
// slabs if its memory pools keep unused memory, and otherwise none.
std::map<std::int32_t, Fragmentation> find_fragmentation(const ledger::Reader&);

// Calls `put`, with a row of the report, for each size class of slabs on each device. `by_device`:
// for each device, by its ordinal, what is known of its slabs: a Fragmentation or a WorstSlabs.
template <class Slabs>
void put_slab_classes(const std::map<std::int32_t, Slabs>& by_device, Put<model::SlabClass> put) {
  for (const auto& [device, all] : by_device) {
    for (const auto& [class_bytes, of] : all.classes)
      put({static_cast<model::Id>(device), class_bytes, of.slab_count, of.live_count,
           of.live_bytes});
  }
}

}  // namespace cuwarden
