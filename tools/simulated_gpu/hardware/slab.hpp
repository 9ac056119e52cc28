// Slabs: 2 MiB of device memory cut into steps of 512 bytes, for requests that leave at least one
// step free. A slab stays with its heap until its last piece is freed, whatever its neighbours do.
// That is the fragmentation that real drivers show.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "tools/simulated_gpu/hardware/address_arena.hpp"

namespace cuwarden::simulated_gpu {

// Bytes of a step, and the largest request that is cut from a slab.
constexpr std::size_t kSlabStep = 512;
constexpr std::size_t kSlabLimit = kPage - kSlabStep;

class Slab {
 public:
  static constexpr unsigned kUnits = kPage / kSlabStep;

  // Takes the first run that is long enough and returns its start. The caller has checked that
  // `units` <= largest_run().
  unsigned take(unsigned units);
  // Frees a run of steps.
  void give(unsigned first, unsigned units);
  unsigned largest_run() const { return largest_; }
  bool empty() const { return used_ == 0; }

 private:
  void set(unsigned first, unsigned units, bool taken);
  unsigned find(unsigned units, unsigned& largest) const;

  std::array<std::uint64_t, kUnits / 64> taken_{};
  unsigned used_ = 0;
  unsigned largest_ = kUnits;
};

// The slabs of one context. The caller takes pages from the device and gives them back, because the
// caller keeps the device's account.
class SlabHeap {
 public:
  // Returns the address of a free piece; 0 if no open slab has room.
  CUdeviceptr take(std::size_t size);
  // Adds an empty slab at the address of a new page.
  void open(CUdeviceptr page);
  // Frees a piece. Returns true if that emptied its slab: the slab is removed, and `page` gets its
  // address.
  bool give(CUdeviceptr start, std::size_t size, CUdeviceptr& page);
  std::size_t pages() const { return slabs_.size(); }
  // Removes all slabs, and calls visit_page(address) for each.
  template <typename Visit>
  void clear(Visit visit_page) {
    for (auto& [page, slab] : slabs_) visit_page(page);
    slabs_.clear();
    by_room_.clear();
  }

 private:
  std::map<CUdeviceptr, Slab> slabs_;
  std::set<std::pair<unsigned, CUdeviceptr>> by_room_;
};

}  // namespace cuwarden::simulated_gpu
