// Hands out addresses for the memory of one simulated device, in pages of 2 MiB. Real host memory
// stands behind an address once it is touched, until its range is given back. Addresses never run
// out before the device's memory does, since a device's address space is far larger than its
// memory.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tools/simulated_gpu/hardware/driver_headers.hpp"

namespace cuwarden::simulated_gpu {

// Bytes of a page of device memory: 2 MiB.
constexpr std::size_t kPage = std::size_t{2} << 20;

// Returns the smallest multiple of `step` that is not less than `value`. `step` is not 0.
constexpr std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// The address space of one device: regions of host addresses that are reserved from the system, and
// the gaps in them that are not handed out. Guarded by the simulator's lock.
class AddressArena {
 public:
  // `region_size`: bytes that are reserved at a time, such as the device's memory; rounded up to 2
  // MiB. Reserves nothing yet.
  explicit AddressArena(std::size_t region_size) : region_size_(round_up(region_size, kPage)) {}

  // Reserves the first region, unless a call has done so. Returns false if the system refuses,
  // because the process may not have that much address space. To be called before take().
  bool prepare();
  // Returns the start of a range of `size` bytes, a multiple of 2 MiB, from the smallest gap that
  // is large enough. If there is none, reserves another region from the system. Returns 0 if the
  // system refuses the region.
  CUdeviceptr take(std::size_t size);
  // Gives back a whole range that take() returned. Its contents are lost: it is zero when handed
  // out again.
  void give(CUdeviceptr start, std::size_t size);
  // True if the address lies in one of the reserved regions, handed out or not.
  bool contains(CUdeviceptr address) const;

 private:
  // Reserves a region of `size` bytes. Returns false if the system refuses.
  bool add_region(std::size_t size);
  // Enters a gap, joined with the gaps before and behind it.
  void insert_gap(CUdeviceptr start, std::size_t size);

  std::size_t region_size_;
  bool prepared_ = false;  // True once prepare() has succeeded.
  // Start and size of each region.
  std::vector<std::pair<CUdeviceptr, std::size_t>> regions_;
  std::map<CUdeviceptr, std::size_t> gaps_;                // Start → size of each gap.
  std::set<std::pair<std::size_t, CUdeviceptr>> by_size_;  // Size and start of each gap.
};

}  // namespace cuwarden::simulated_gpu
