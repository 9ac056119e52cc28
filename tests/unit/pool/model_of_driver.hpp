// Computes the memory that the driver takes for requests, with the simulated GPU's slabs. A real
// driver takes as much (tests/contract/slab_facts.cpp).
#pragma once

#include <cstdint>
#include <map>

#include "runtime_hooks/pool/device_access.hpp"
#include "tools/simulated_gpu/hardware/slab.hpp"

namespace cuwarden::pool {

// Computes the memory that the driver takes for a program's live requests. The caller gives each
// request a number.
class ModelOfDriver {
 public:
  // Enters the request with the number `id`, which no live request has, for `bytes`.
  void allocate(std::uint64_t id, std::uint64_t bytes) {
    if (bytes > simulated_gpu::kSlabLimit) {
      pages_ += up_to_page(bytes) / page_bytes;
      return;
    }
    CUdeviceptr at = slabs_.take(bytes);
    if (at == 0) {
      slabs_.open(last_slab_ += page_bytes);
      at = slabs_.take(bytes);
    }
    pieces_[id] = at;
  }
  // Ends the live request with the number `id`, which asked for `bytes`.
  void free(std::uint64_t id, std::uint64_t bytes) {
    if (bytes > simulated_gpu::kSlabLimit) {
      pages_ -= up_to_page(bytes) / page_bytes;
      return;
    }
    CUdeviceptr of = 0;
    slabs_.give(pieces_.at(id), bytes, of);
    pieces_.erase(id);
  }
  // Returns the bytes of the device that the driver holds for all live requests.
  std::uint64_t held_bytes() const { return (pages_ + slabs_.pages()) * page_bytes; }

 private:
  simulated_gpu::SlabHeap slabs_;  // the slabs of the small requests
  // Addresses of the small requests in slabs, by their numbers.
  std::map<std::uint64_t, CUdeviceptr> pieces_;
  // Address of the slab that was opened last. Slabs lie one behind the other; the first begins 2
  // MiB above the initial value.
  CUdeviceptr last_slab_ = CUdeviceptr{1} << 40;
  // Number of pages of the large requests, which get pages of their own.
  std::uint64_t pages_ = 0;
};

}  // namespace cuwarden::pool
