// The time for which a thread may still wait for cuwarden's locks, over all locks together. A
// thread that ends the process, or a Python interpreter in it, has such a bound; other threads have
// none.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/thread_id.hpp"

namespace cuwarden {

// The time that threads may still spend waiting for locks of type FutexLock, over all locks
// together. At the end of the process, readings of devices use up the same time (spend()). A thread
// gets a budget by a WaitBudget::Scope, and several threads may share one. A
// thread without a budget waits as long as each lock allows.
class WaitBudget {
  // A thread (the kernel's id; 0: the entry is free) and the budget that the thread has now.
  // Entries are in a table, because thread-local memory is scarce.
  struct Entry {
    std::atomic<int> thread{0};  // The kernel's id of the thread; 0: the entry is free.
    // The budget that limits the thread's waiting now; null: none.
    std::atomic<WaitBudget*> budget{nullptr};
  };

 public:
  // `ns`: the nanoseconds of waiting for locks that are allowed, over all locks together.
  explicit constexpr WaitBudget(std::uint64_t ns) noexcept : left_ns_(ns) {}

  // Returns the nanoseconds of waiting for locks that are still allowed; 0: no lock is waited for
  // any more.
  std::uint64_t left_ns() const noexcept { return left_ns_.load(std::memory_order_relaxed); }
  // Subtracts `ns` nanoseconds that were spent waiting for a lock, or on other work that the end of
  // the process has to wait for. 0 are left if less than `ns` were left.
  void spend(std::uint64_t ns) noexcept {
    std::uint64_t left = left_ns();
    while (!left_ns_.compare_exchange_weak(left, left - std::min(left, ns))) {
    }
  }
  // Sets the nanoseconds of waiting for locks that are allowed from now on.
  void renew(std::uint64_t ns) noexcept { left_ns_.store(ns, std::memory_order_relaxed); }

  // Returns the budget of the calling thread's waiting for locks; null if the thread has none, so
  // that it may wait as long as a lock allows. Makes a system call, so it is called only before a
  // thread sleeps.
  static WaitBudget* current() noexcept {
    const Entry* const entry = entry_of(own_thread_id());
    return entry == nullptr ? nullptr : entry->budget.load(std::memory_order_relaxed);
  }

  // Limits the calling thread's waiting for locks by `budget` for the length of a scope. `budget`
  // must outlive the scope; null: in the scope, no budget limits the thread's waiting. The
  // destructor restores the thread's earlier budget. A scope has no effect if 32 other threads are
  // in scopes already.
  class [[nodiscard]] Scope {
   public:
    // Makes `budget` the calling thread's budget. The destructor restores the earlier budget. If
    // `budget` is null, no budget limits the thread meanwhile.
    explicit Scope(WaitBudget* budget) noexcept : entry_(entry_of(own_thread_id())) {
      if (entry_ == nullptr) {
        is_first_ = true;
        entry_ = take_entry();
      }
      if (entry_ != nullptr) before_ = entry_->budget.exchange(budget);
    }
    ~Scope() {
      if (entry_ == nullptr) return;
      entry_->budget.store(before_);
      if (is_first_) entry_->thread.store(0);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Entry* entry_;  // The calling thread's entry of `entries_`; null: no entry was free.
    WaitBudget* before_ = nullptr;  // The thread's budget before this scope; null: none.
    // True if the thread had no entry in `entries_` before this scope.
    bool is_first_ = false;
  };

 private:
  // Returns the table's entry for this thread (the kernel's id); null if the thread has none.
  static Entry* entry_of(int thread) noexcept {
    for (Entry& entry : entries_)
      if (entry.thread.load(std::memory_order_relaxed) == thread) return &entry;
    return nullptr;
  }
  // Gives a free entry of the table to the calling thread, and returns it; null if none is free.
  static Entry* take_entry() noexcept {
    for (Entry& entry : entries_) {
      int none = 0;
      if (entry.thread.compare_exchange_strong(none, own_thread_id())) return &entry;
    }
    return nullptr;
  }

  std::atomic<std::uint64_t> left_ns_;  // Nanoseconds of waiting that are still allowed.
  static Entry entries_[32];  // The threads that are inside a Scope now, between free entries.
};

inline constinit WaitBudget::Entry WaitBudget::entries_[32]{};

}  // namespace cuwarden
