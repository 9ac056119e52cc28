// Finds address ranges by best fit, and joins neighbouring gaps.
#include "tools/simulated_gpu/hardware/address_arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

namespace cuwarden::simulated_gpu {

bool AddressArena::prepare() {
  if (!prepared_) prepared_ = add_region(region_size_);
  return prepared_;
}

bool AddressArena::add_region(std::size_t size) {
  void* base = mmap(nullptr, size + 2 * kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return false;
  // AddressArena never gives out the first page of a region, so that no entry of the list of
  // regions points to an allocation.
  const CUdeviceptr first = round_up(reinterpret_cast<CUdeviceptr>(base), kPage);
  const CUdeviceptr start = first + kPage;
  regions_.emplace_back(first, size + kPage);
  insert_gap(start, size);
  return true;
}

bool AddressArena::contains(CUdeviceptr address) const {
  return std::any_of(regions_.begin(), regions_.end(),
                     [&](const auto& r) { return address - r.first < r.second; });
}

CUdeviceptr AddressArena::take(std::size_t size) {
  auto best = by_size_.lower_bound({size, 0});
  if (best == by_size_.end()) {
    if (!add_region(std::max(size, region_size_)) && !add_region(size)) return 0;
    best = by_size_.lower_bound({size, 0});
  }
  const auto [gap, start] = *best;
  by_size_.erase(best);
  gaps_.erase(start);
  if (gap > size) {
    gaps_.emplace(start + size, gap - size);
    by_size_.emplace(gap - size, start + size);
  }
  return start;
}

void AddressArena::give(CUdeviceptr start, std::size_t size) {
  madvise(reinterpret_cast<void*>(start), size, MADV_DONTNEED);
  insert_gap(start, size);
}

void AddressArena::insert_gap(CUdeviceptr start, std::size_t size) {
  const auto next = gaps_.lower_bound(start);
  if (next != gaps_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == start) {
      start = previous->first;
      size += previous->second;
      by_size_.erase({previous->second, previous->first});
      gaps_.erase(previous);
    }
  }
  if (next != gaps_.end() && start + size == next->first) {
    size += next->second;
    by_size_.erase({next->second, next->first});
    gaps_.erase(next);
  }
  gaps_.emplace(start, size);
  by_size_.emplace(size, start);
}

}  // namespace cuwarden::simulated_gpu
