#include "runtime_hooks/tracking/handle_set.hpp"

namespace cuwarden::tracking {

constinit HandleSet launched_kernels, loaded_kernels, submitted_graphs;

bool HandleSet::has(const void* handle) const noexcept {
  const std::uint64_t word = word_of(handle);
  const std::size_t first = slot_of(word) / line * line;
  for (std::size_t i = first; i < first + line; ++i)
    if (slots_[i].load(std::memory_order_relaxed) == word) return true;
  return false;
}

void HandleSet::add(const void* handle) noexcept {
  const std::uint64_t word = word_of(handle);
  if (has(handle)) return;
  const std::size_t expected = slot_of(word);
  for (std::size_t i = 0; i < line; ++i) {
    std::uint64_t free = 0;
    if (slots_[expected ^ i].compare_exchange_strong(free, word, std::memory_order_relaxed)) return;
  }
  slots_[expected].store(word, std::memory_order_relaxed);
}

void HandleSet::remove(const void* handle) noexcept {
  const std::uint64_t word = word_of(handle);
  const std::size_t first = slot_of(word) / line * line;
  for (std::size_t i = first; i < first + line; ++i) {
    std::uint64_t found = word;
    slots_[i].compare_exchange_strong(found, 0, std::memory_order_relaxed);
  }
}

void HandleSet::forget_all() noexcept {
  for (std::atomic<std::uint64_t>& slot : slots_) slot.store(0, std::memory_order_relaxed);
}

}  // namespace cuwarden::tracking
