// Slabs: pages of 2 MiB of device memory from which many small requests are served, in units of 512
// bytes. A slab goes back to the device only when all its units are free, so that one small
// allocation can keep 2 MiB. Real drivers have the same fragmentation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "tools/simulated_gpu/hardware/address_arena.hpp"

namespace cuwarden::simulated_gpu {

// Bytes of a slab, and its alignment.
constexpr std::size_t kSlabBytes = kPage;
// Bytes of the units in which a slab's memory is given out. A request's size is rounded up to a
// multiple of them.
constexpr std::size_t kSlabStep = 512;
// Largest request, in bytes, that is served from a slab. Larger requests get pages of 2 MiB of
// their own.
constexpr std::size_t kSlabLimit = kSlabBytes - kSlabStep;

// One slab, a page of 2 MiB of device memory, in units of 512 bytes that are taken or free. The
// object does not know the page's address; units are named by their index from 0.
class Slab {
 public:
  // Number of units of 512 bytes in a slab.
  static constexpr unsigned kUnits = kSlabBytes / kSlabStep;

  // Marks `units` consecutive units of the slab as taken, in the first run of free units that is
  // long enough. Returns the index of the first unit. `units`: 1 to largest_run().
  unsigned take(unsigned units);
  // Marks `units` units of the slab, from the index `first` on, as free. `first`: an index that
  // take(units) has returned.
  void give(unsigned first, unsigned units);
  // Returns the number of units in the slab's longest run of free units; 0 if all are taken.
  unsigned largest_run() const { return largest_; }
  // True if no unit of the slab is taken.
  bool empty() const { return used_ == 0; }

 private:
  // Marks `units` units of the slab, from the index `first` on, as taken (true) or free (false).
  void set(unsigned first, unsigned units, bool taken);
  // Returns the index of the first run of at least `units` free units; kUnits if there is none or
  // if `units` is 0. Sets `largest` to the number of units in the longest run.
  unsigned find(unsigned units, unsigned& largest) const;

  // A bit for each unit of 512 bytes of the slab, by its index: 1 if the unit is taken.
  std::array<std::uint64_t, kUnits / 64> taken_{};
  unsigned used_ = 0;          // Number of units of the slab that are taken.
  unsigned largest_ = kUnits;  // Number of units in the longest run of free units.
};

// All slabs of one context. A slab is a page of 2 MiB of device memory for small requests. The
// caller takes the pages from the device and gives them back, because it counts the device's used
// bytes.
class SlabHeap {
 public:
  // Takes `size` bytes, at most kSlabLimit, in one of the slabs, and returns their address. Returns
  // 0 if no slab has so many free bytes in a row; then the caller adds a slab by open() and calls
  // again.
  CUdeviceptr take(std::size_t size);
  // Adds an empty slab. `page`: address of a page of 2 MiB that the caller has taken from the
  // device.
  void open(CUdeviceptr page);
  // Frees the `size` bytes at `start` that take(size) has returned. Sets `page` to the address of
  // their slab's page. Returns true if the slab is empty now: then the slab is removed, and the
  // caller gives the page back to the device.
  bool give(CUdeviceptr start, std::size_t size, CUdeviceptr& page);
  // Returns the number of slabs, each of which is a page of 2 MiB.
  std::size_t pages() const { return slabs_.size(); }
  // Removes all slabs, and calls visit_page(address) for the page of each, which the caller gives
  // back to the device.
  template <typename Visit>
  void clear(Visit visit_page) {
    for (auto& [page, slab] : slabs_) visit_page(page);
    slabs_.clear();
    by_room_.clear();
  }

 private:
  std::map<CUdeviceptr, Slab> slabs_;  // All slabs of the context, by address of the page.
  // Slabs with free units, by the length of their longest run of free units. Each entry is that
  // length, in units, and the address of the slab's page.
  std::set<std::pair<unsigned, CUdeviceptr>> by_room_;
};

}  // namespace cuwarden::simulated_gpu
