// Hands out addresses for the memory of one simulated device, in pages of 2 MiB. A page takes host
// memory from the first access to it until its range is given back. New regions of addresses are
// reserved when needed, so that fragmentation of addresses makes no request fail.
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

// The address space of one simulated device: regions of host addresses that are reserved from the
// system, and the gaps in them that are free. Callers hold Simulator::mutex.
class AddressArena {
 public:
  // `region_size`: bytes of addresses that are reserved at a time, usually the size of the device's
  // memory; rounded up to 2 MiB. Reserves nothing yet.
  explicit AddressArena(std::size_t region_size) : region_size_(round_up(region_size, kPage)) {}

  // Reserves the first region of addresses, unless an earlier call has done so. Returns false if
  // the system refuses, because the process may not have that much address space. Callers call this
  // before take().
  bool prepare();
  // Takes a range of `size` bytes of addresses, and returns its start, a multiple of 2 MiB. `size`:
  // a multiple of 2 MiB. Uses the smallest gap that is large enough; without one, reserves another
  // region from the system. Returns 0 if the system refuses that.
  CUdeviceptr take(std::size_t size);
  // Frees a range of addresses. `start` and `size` must be those of one call of take(). The
  // contents are lost; a later take() may return the range again, filled with zeros.
  void give(CUdeviceptr start, std::size_t size);
  // True if the address lies in a region that this object has reserved, whether take() has returned
  // it or not.
  bool contains(CUdeviceptr address) const;

 private:
  // Reserves a region of `size` bytes of addresses from the system, and enters it as a free range.
  // Returns false if the system refuses.
  bool add_region(std::size_t size);
  // Enters a free range of `size` bytes of addresses, joined with free ranges that end or begin
  // beside it.
  void insert_gap(CUdeviceptr start, std::size_t size);

  std::size_t region_size_;  // Bytes of addresses that are reserved from the system at a time.
  bool prepared_ = false;    // True once prepare() has reserved the first region.
  // Start and size in bytes of each region of addresses that is reserved from the system.
  std::vector<std::pair<CUdeviceptr, std::size_t>> regions_;
  std::map<CUdeviceptr, std::size_t> gaps_;  // Bytes of each free range of addresses, by its start.
  // Bytes and start of each free range of addresses, the smallest range first.
  std::set<std::pair<std::size_t, CUdeviceptr>> by_size_;
};

}  // namespace cuwarden::simulated_gpu
