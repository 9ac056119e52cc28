// Occupancy bitmaps of slabs, and the choice of the slab with the least sufficient room.
#include "tools/simulated_gpu/hardware/slab.hpp"

#include <bit>

namespace cuwarden::simulated_gpu {
namespace {

unsigned units_of(std::size_t size) {
  return static_cast<unsigned>(round_up(size, kSlabStep) / kSlabStep);
}

}  // namespace

void Slab::set(unsigned first, unsigned units, bool taken) {
  while (units > 0) {
    const unsigned word = first / 64;
    const unsigned bit = first % 64;
    const unsigned count = units < 64 - bit ? units : 64 - bit;
    const std::uint64_t mask = (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1)
                               << bit;
    if (taken) {
      taken_[word] |= mask;
    } else {
      taken_[word] &= ~mask;
    }
    first += count;
    units -= count;
  }
}

// Returns the start of the earliest run of `units` free steps, kUnits if there is none. `largest`
// gets the length of the longest run.
unsigned Slab::find(unsigned units, unsigned& largest) const {
  unsigned found = kUnits;
  unsigned run = 0;
  largest = 0;
  unsigned at = 0;
  while (at < kUnits) {
    const unsigned bit = at % 64;
    const std::uint64_t word = taken_[at / 64] >> bit;
    const unsigned left = 64 - bit;
    const unsigned zeros = word == 0 ? left : static_cast<unsigned>(std::countr_zero(word));
    if (zeros > 0) {
      run += zeros;
      at += zeros;
      if (run > largest) largest = run;
      if (found == kUnits && units > 0 && run >= units) found = at - run;
      continue;
    }
    run = 0;
    const unsigned ones = static_cast<unsigned>(std::countr_one(word));
    at += ones < left ? ones : left;
  }
  return found;
}

unsigned Slab::take(unsigned units) {
  const unsigned first = find(units, largest_);
  set(first, units, true);
  used_ += units;
  find(0, largest_);
  return first;
}

void Slab::give(unsigned first, unsigned units) {
  set(first, units, false);
  used_ -= units;
  find(0, largest_);
}

CUdeviceptr SlabHeap::take(std::size_t size) {
  const unsigned units = units_of(size);
  const auto best = by_room_.lower_bound({units, 0});
  if (best == by_room_.end()) return 0;
  const CUdeviceptr page = best->second;
  by_room_.erase(best);
  Slab& slab = slabs_.find(page)->second;
  const unsigned first = slab.take(units);
  if (slab.largest_run() > 0) by_room_.emplace(slab.largest_run(), page);
  return page + first * kSlabStep;
}

void SlabHeap::open(CUdeviceptr page) {
  const Slab& slab = slabs_.emplace(page, Slab()).first->second;
  by_room_.emplace(slab.largest_run(), page);
}

bool SlabHeap::give(CUdeviceptr start, std::size_t size, CUdeviceptr& page) {
  page = start / kPage * kPage;
  const auto found = slabs_.find(page);
  Slab& slab = found->second;
  const unsigned before = slab.largest_run();
  slab.give(static_cast<unsigned>((start - page) / kSlabStep), units_of(size));
  if (before > 0 && before != slab.largest_run()) by_room_.erase({before, page});
  if (slab.empty()) {
    by_room_.erase({slab.largest_run(), page});
    slabs_.erase(found);
    return true;
  }
  if (before != slab.largest_run()) by_room_.emplace(slab.largest_run(), page);
  return false;
}

}  // namespace cuwarden::simulated_gpu
