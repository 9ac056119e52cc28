// A list of memory that the program freed while its device could not be waited for, as during a
// stream capture. Each context takes its own items out again later.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::pool {

// A list of memory that the program has freed, but that the device may still use. Several threads
// may use the list at once. context_of(item), a function for the type `Item`, returns the ContextId
// of the context that must be waited for before the memory is used again.
template <class Item>
class Deferred {
 public:
  // True if the list holds any item. Costs a single load.
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }

  // Adds the item. If host memory is lacking, or another thread has kept the list's lock for more
  // than ten seconds, the item is not listed. Its memory then stays allocated until its context
  // ends.
  void put(const Item& item) noexcept {
    const Locked locked(lock_);
    if (!locked) return;
    try {
      items_.push_back(item);
      any_.store(true, std::memory_order_relaxed);
    } catch (...) {
      // There is no host memory to list the item: it stays allocated until its context ends.
    }
  }

  // Removes and returns one item of the context, in no particular order. Returns none if the list
  // has none of that context, or if another thread has kept the list's lock for more than ten
  // seconds. The list is searched from its end, because most items belong to one context.
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
