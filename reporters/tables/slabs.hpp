// Works out how much of a device the driver's slabs and its rounding lock, from the addresses and
// sizes of live allocations. The driver cuts small requests from slabs, pages of their own that
// return to the device when the last piece is freed, and rounds large ones up to whole pages.
//
// The size of a page, the steps in which pieces are cut and the size of the largest piece are taken
// from what is seen. If the sum is above the device's used bytes, they are wrong.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "reporters/model/fragmentation.hpp"
#include "reporters/model/put.hpp"
#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// A slab of the driver with at least one live piece.
struct Slab {
  std::uint64_t address = 0;
  std::uint64_t live_count = 0, live_bytes = 0;  // live pieces; bytes as requested
  std::uint64_t cut_bytes = 0;                   // live bytes, each piece rounded up to whole steps
  // size class of most of its bytes: a power of two
  std::uint64_t class_bytes = 0;
};

// All slabs of one size class together.
struct SlabClass {
  std::uint64_t slab_count = 0, live_count = 0, live_bytes = 0;
};

// Pieces of one group, and the bytes that they lock in their slabs: each slab's locked bytes,
// divided equally among its pieces.
struct SlabHolder {
  std::uint64_t count = 0, bytes = 0, locked_bytes = 0;
};

// Slabs and rounding of one device.
struct Fragmentation {
  // the driver's usual sizes, unless others were seen
  std::uint64_t page_bytes = 2 << 20, step_bytes = 512;
  std::uint64_t largest_piece = 0;  // bytes of the largest piece that shared a page; 0: none did

  std::vector<Slab> slabs;                      // by address
  std::map<std::uint64_t, SlabClass> classes;   // by class_bytes
  std::map<std::uint32_t, SlabHolder> holders;  // by group
  std::uint64_t locked_bytes = 0;               // bytes in slabs that belong to no live piece
  std::uint64_t rounding_bytes = 0;  // bytes that rounding added to requests, in slabs and in pages
};

// Returns the bytes of the largest request that the driver could serve, in whole pages. Idle memory
// of memory pools counts as free, because the driver takes it back for other requests. The last
// pages of a device do not count: the driver does not hand them out.
inline std::uint64_t largest_request(std::uint64_t free_bytes, std::uint64_t memory_pool_idle_bytes,
                                     std::uint64_t page) {
  const std::uint64_t there = free_bytes + memory_pool_idle_bytes;
  return (there - std::min(there, 2 * page)) / page * page;
}

// Returns slabs and rounding by device ordinal. Devices without live linear memory are left out,
// unless memory pools keep memory idle there. Memory pools and virtual memory are not cut from
// slabs. Small arrays are, from slabs of their own, whose addresses the driver does not tell.
std::map<std::int32_t, Fragmentation> find_fragmentation(const ledger::Reader&);

// Puts the size classes of the slabs into a table: those at the end, or at the worst moment, by the
// type of `by_device`.
template <class Slabs>
void put_slab_classes(const std::map<std::int32_t, Slabs>& by_device, Put<model::SlabClass> put) {
  for (const auto& [device, all] : by_device) {
    for (const auto& [class_bytes, of] : all.classes)
      put({static_cast<model::Id>(device), class_bytes, of.slab_count, of.live_count,
           of.live_bytes});
  }
}

}  // namespace cuwarden
