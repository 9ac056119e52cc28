#include "runtime_hooks/tracking/launched_kernels.hpp"

namespace cuwarden::tracking {

constinit LaunchedKernels launched_kernels, loaded_kernels;

bool LaunchedKernels::has(CUfunction kernel) const noexcept {
  const std::uint64_t word = word_of(kernel);
  const std::size_t first = slot_of(word) / line * line;
  for (std::size_t i = first; i < first + line; ++i)
    if (slots_[i].load(std::memory_order_relaxed) == word) return true;
  return false;
}

void LaunchedKernels::add(CUfunction kernel) noexcept {
  const std::uint64_t word = word_of(kernel);
  if (has(kernel)) return;
  const std::size_t expected = slot_of(word);
  for (std::size_t i = 0; i < line; ++i) {
    std::uint64_t free = 0;
    if (slots_[expected ^ i].compare_exchange_strong(free, word, std::memory_order_relaxed)) return;
  }
  slots_[expected].store(word, std::memory_order_relaxed);
}

void LaunchedKernels::forget_all() noexcept {
  for (std::atomic<std::uint64_t>& slot : slots_) slot.store(0, std::memory_order_relaxed);
}

}  // namespace cuwarden::tracking
