// The address space of one device. Regions are reserved from the system and handed out in 2 MiB
// pages by best fit. The address space never limits what fits on the device: if no gap is wide
// enough, another region is reserved, as a device's own address space is far wider than its memory.
// Pages take memory when they are first touched, and lose it when their range is given back.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tools/simulated_gpu/hardware/driver_headers.hpp"

namespace cuwarden::simulated_gpu {

// Bytes of a page.
constexpr std::size_t kPage = std::size_t{2} << 20;

// Rounds `value` up to a multiple of `step`.
constexpr std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

class AddressArena {
 public:
  // The arena reserves addresses in regions of `region_size` bytes or more.
  explicit AddressArena(std::size_t region_size) : region_size_(round_up(region_size, kPage)) {}

  // Reserves the first region. Returns false if the process may not have that much address space.
  bool prepare();
  // Returns `size` bytes of addresses, a multiple of 2 MiB; 0 if the system refuses.
  CUdeviceptr take(std::size_t size);
  // Gives back a whole range that take() returned.
  void give(CUdeviceptr start, std::size_t size);
  bool contains(CUdeviceptr address) const;

 private:
  bool add_region(std::size_t size);
  void insert_gap(CUdeviceptr start, std::size_t size);

  std::size_t region_size_;
  bool prepared_ = false;
  std::vector<std::pair<CUdeviceptr, std::size_t>> regions_;
  std::map<CUdeviceptr, std::size_t> gaps_;
  std::set<std::pair<std::size_t, CUdeviceptr>> by_size_;
};

}  // namespace cuwarden::simulated_gpu
