// Slabs: pages of 2 MiB of device memory from which many small requests are served, as real drivers
// do. A slab is handed out in units of 512 bytes. It stays with its context until its last piece is
// freed, so that one small allocation can hold 2 MiB. That is the fragmentation that real drivers
// show.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "tools/simulated_gpu/hardware/address_arena.hpp"

namespace cuwarden::simulated_gpu {

// Bytes of the units in which a slab is handed out. Each request is rounded up to a multiple.
constexpr std::size_t kSlabStep = 512;
// Largest request, in bytes, that is served from a slab. A request that needs a whole page of 2 MiB
// gets one of its own.
constexpr std::size_t kSlabLimit = kPage - kSlabStep;

// One slab: a bit for each unit of 512 bytes says if the unit is taken.
class Slab {
 public:
  // Number of units in a slab.
  static constexpr unsigned kUnits = kPage / kSlabStep;

  // Takes `units` consecutive units, from the first gap that is long enough. Returns the index of
  // the first one. `units` must not exceed largest_run().
  unsigned take(unsigned units);
  // Frees `units` units from the index `first` on.
  void give(unsigned first, unsigned units);
  // Returns the number of units in the longest gap.
  unsigned largest_run() const { return largest_; }
  // True if no unit is taken.
  bool empty() const { return used_ == 0; }

 private:
  // Marks `units` units from the index `first` on as taken or free.
  void set(unsigned first, unsigned units, bool taken);
  // Returns the index of the first gap of at least `units` units; kUnits if there is none. Sets
  // `largest` to the length of the longest gap.
  unsigned find(unsigned units, unsigned& largest) const;

  std::array<std::uint64_t, kUnits / 64> taken_{};  // A bit for each unit.
  unsigned used_ = 0;                               // Number of units that are taken.
  unsigned largest_ = kUnits;                       // Units in the longest gap.
};

// All slabs of one context. The caller takes the slabs' pages from the device and gives them back
// to it, because the caller counts the device's used bytes.
class SlabHeap {
 public:
  // Returns the address of `size` bytes, at most kSlabLimit, in one of the slabs. Returns 0 if no
  // slab has room; then the caller adds a slab by open() and calls again.
  CUdeviceptr take(std::size_t size);
  // Adds an empty slab. `page`: address of a page of 2 MiB that the caller has taken from the
  // device.
  void open(CUdeviceptr page);
  // Frees the memory at `start` that take(size) returned. Sets `page` to the address of its slab.
  // Returns true if the slab is empty now: then it is removed, and the caller gives the page back
  // to the device.
  bool give(CUdeviceptr start, std::size_t size, CUdeviceptr& page);
  // Returns the number of slabs.
  std::size_t pages() const { return slabs_.size(); }
  // Removes all slabs, and calls visit_page(address) for the page of each.
  template <typename Visit>
  void clear(Visit visit_page) {
    for (auto& [page, slab] : slabs_) visit_page(page);
    slabs_.clear();
    by_room_.clear();
  }

 private:
  std::map<CUdeviceptr, Slab> slabs_;  // By address of the page.
  // Units in the longest gap, and address, of each slab that is not full.
  std::set<std::pair<unsigned, CUdeviceptr>> by_room_;
};

}  // namespace cuwarden::simulated_gpu
