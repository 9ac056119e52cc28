#include "runtime_hooks/pool/meshing/eviction.hpp"

#include "runtime_hooks/pool/contents.hpp"

namespace cuwarden::pool {

Arena::Eviction::~Eviction() {
  if (is_host_mapped_) unmap_scratch(scratch_);
  if (scratch_ != 0 && !is_scratch_stuck_)
    real_.cuMemAddressFree(scratch_, whole_addresses(2 * bytes_));
  if (host_ != 0) real_.cuMemRelease(host_);
  if (arena_.evicted_.run == 0) return;
  if (run().is_lost)
    arena_.pages_[run().first].withheld_parts += static_cast<std::uint32_t>(parts_);
  else
    arena_.packing_.renounce_withheld(parts_);
  if (!arena_.evicted_.is_on_host) arena_.evicted_.run = 0;
}

bool Arena::Eviction::reserve() noexcept try {
  std::uint64_t parts = 0;
  arena_.each_page(run(), [&](std::uint64_t page) { parts += 1 + arena_.pages_[page].blocks; });
  arena_.packing_.announce_withheld(parts);
  parts_ = parts;
  if (real_.cuMemAddressReserve(&scratch_, whole_addresses(2 * bytes_), 0, 0, 0) != CUDA_SUCCESS) {
    scratch_ = 0;
    return false;
  }
  is_host_mapped_ = map_scratch(scratch_, host_);
  return is_host_mapped_;
} catch (...) {
  return false;
}

bool Arena::Eviction::map_scratch(CUdeviceptr at, CUmemGenericAllocationHandle handle) noexcept {
  if (real_.cuMemMap(at, bytes_, 0, handle, 0) != CUDA_SUCCESS) return false;
  if (Peers::grant(real_, at, bytes_, arena_.device(), 0) == CUDA_SUCCESS) return true;
  unmap_scratch(at);
  return false;
}

void Arena::Eviction::unmap_scratch(CUdeviceptr at) noexcept {
  if (real_.cuMemUnmap(at, bytes_) != CUDA_SUCCESS) is_scratch_stuck_ = true;
}

bool Arena::Eviction::prepare(std::uint64_t most_bytes) noexcept {
  const auto where = on_host_of(real_, arena_.device());
  if (!where || arena_.evicted_.run != 0) return false;
  for (const Run& run : arena_.runs_) {
    if (run.pages_in_use == 0 || run.is_shared || run.is_lost || run.bytes() > most_bytes ||
        run.bytes() <= bytes_)
      continue;
    bytes_ = run.bytes();
    arena_.evicted_.run = arena_.pages_[run.first].run;
  }
  if (bytes_ == 0) return false;
  if (real_.cuMemCreate(&host_, bytes_, &*where, 0) == CUDA_SUCCESS) return reserve();
  host_ = 0;
  return false;
}

bool Arena::Eviction::prepare_return() noexcept {
  // Memory without a block is given back by Arena::give_back().
  if (!arena_.evicted_.is_on_host || run().pages_in_use == 0) return false;
  bytes_ = run().bytes();
  const std::uint64_t start = arena_.address_of(run().first);
  if (real_.cuMemRetainAllocationHandle(&host_, reinterpret_cast<void*>(start)) == CUDA_SUCCESS)
    return reserve();
  host_ = 0;
  return false;
}

bool Arena::Eviction::copy(std::uint64_t to, std::uint64_t from) noexcept {
  if (real_.cuMemcpyDtoDAsync_v2(to, from, bytes_, nullptr) != CUDA_SUCCESS ||
      real_.cuStreamSynchronize(nullptr) != CUDA_SUCCESS)
    return false;
  const Contents outcome = verifies_ ? compare(real_, from, to, bytes_) : Contents::equal;
  if (outcome == Contents::different) arena_.counts_.differing_bytes = page_bytes;
  return outcome == Contents::equal;
}

bool Arena::Eviction::exchange(CUmemGenericAllocationHandle handle,
                               CUmemGenericAllocationHandle before) noexcept {
  Run& moved = run();
  if (real_.cuMemUnmap(arena_.address_of(moved.first), bytes_) != CUDA_SUCCESS) return false;
  if (arena_.map_again(real_, moved.first, bytes_, handle)) return true;
  if (!arena_.map_again(real_, moved.first, bytes_, before)) arena_.lose(moved);
  return false;
}

// The device memory stays whole until the host memory is mapped in its stead.
bool Arena::Eviction::evict() noexcept {
  const std::uint64_t start = arena_.address_of(run().first);
  CUmemGenericAllocationHandle before = 0;
  if (!copy(scratch_, start) ||
      real_.cuMemRetainAllocationHandle(&before, reinterpret_cast<void*>(start)) != CUDA_SUCCESS)
    return false;
  const bool is_exchanged = exchange(host_, before);
  real_.cuMemRelease(before);
  if (!is_exchanged) return false;
  arena_.count_unused(run(), -1);
  arena_.counts_.held_bytes -= bytes_;
  arena_.counts_.evicted_bytes = bytes_;
  arena_.evicted_.is_on_host = true;
  return true;
}

// The copy is made before the run's addresses have the new memory, so that a failed copy changes
// nothing.
bool Arena::Eviction::bring_back() noexcept {
  const CUdeviceptr at = scratch_ + bytes_;
  CUmemGenericAllocationHandle made = 0;
  if (real_.cuMemCreate(&made, bytes_, &arena_.where_, 0) != CUDA_SUCCESS) return false;
  bool is_back = false;
  if (map_scratch(at, made)) {
    is_back = copy(at, scratch_) && exchange(made, host_);
    unmap_scratch(at);
  }
  real_.cuMemRelease(made);
  if (!is_back) return false;
  arena_.evicted_.is_on_host = false;
  arena_.counts_.held_bytes += bytes_;
  arena_.counts_.evicted_bytes = 0;
  arena_.count_unused(run(), 1);
  return true;
}

}  // namespace cuwarden::pool
