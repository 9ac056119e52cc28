// Memory that the program freed while nobody may give it back: kept, and taken out again one by
// one, by the context that it belongs to.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::pool {

// Of items for which there is context_of(item).
template <class Item>
class Deferred {
 public:
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }

  void put(const Item& item) noexcept {
    const Locked locked(lock_);
    if (!locked) return;
    try {
      items_.push_back(item);
      any_.store(true, std::memory_order_relaxed);
    } catch (...) {
      // No memory to remember it by: it is kept until its context ends.
    }
  }

  // None: there is none left. The order does not matter; most are of one context.
  std::optional<Item> take(ContextId context) noexcept {
    const Locked locked(lock_);
    if (!locked) return std::nullopt;
    for (std::size_t i = items_.size(); i-- > 0;) {
      if (context_of(items_[i]) != context) continue;
      const Item item = items_[i];
      items_[i] = items_.back();
      items_.pop_back();
      any_.store(!items_.empty(), std::memory_order_relaxed);
      return item;
    }
    return std::nullopt;
  }

 private:
  FutexLock lock_;
  std::atomic<bool> any_{false};
  std::vector<Item> items_;
};

}  // namespace cuwarden::pool
