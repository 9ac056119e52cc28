// Slabs: 2 MiB of device memory cut into steps of 512 bytes for requests that leave at least one.
// A slab stays with its heap until its last piece is freed, whatever its neighbours do:
// that is the fragmentation that real drivers show.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "tools/simulated_gpu/address_arena.hpp"

namespace cuwarden::simulated_gpu {

constexpr std::size_t kSlabStep = 512;
constexpr std::size_t kSlabLimit = kPage - kSlabStep;

class Slab {
 public:
  static constexpr unsigned kUnits = kPage / kSlabStep;

  // First fit; the caller has checked that `units` <= largest_run().
  unsigned take(unsigned units);
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

// The slabs of one context. Opening and closing a page is the caller's business, who owns
// the account of the device.
class SlabHeap {
 public:
  // 0 when no open slab has room.
  CUdeviceptr take(std::size_t size);
  void open(CUdeviceptr page);
  // True when that emptied the slab: its page, already forgotten here, is at `page`.
  bool give(CUdeviceptr start, std::size_t size, CUdeviceptr& page);
  std::size_t pages() const { return slabs_.size(); }
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
