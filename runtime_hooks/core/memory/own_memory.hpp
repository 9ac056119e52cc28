// The list of the memory that holds cuwarden's own data. An address stored there is cuwarden's
// copy, and does not show that the program still uses the allocation at that address.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuwarden {

// The ranges of memory that cuwarden has mapped for itself. A search for the program's pointers to
// allocations skips these ranges. All functions may be called by several threads at once. They take
// no lock and allocate nothing.
class OwnMemory {
 public:
  // Adds a range of `bytes` bytes from `start` on. Does nothing if `start` is null, or if the list
  // is full: a search for pointers then counts pointers in the range as the program's.
  static void add(const void* start, std::size_t bytes) noexcept {
    if (start == nullptr) return;
    for (std::size_t i = 0; i < most; ++i) {
      std::uint64_t none = 0;
      if (!entries_[i].start.compare_exchange_strong(none, being_filled)) continue;
      entries_[i].bytes.store(bytes, std::memory_order_relaxed);
      entries_[i].start.store(reinterpret_cast<std::uint64_t>(start), std::memory_order_release);
      std::size_t used = used_.load(std::memory_order_relaxed);
      while (used < i + 1 && !used_.compare_exchange_weak(used, i + 1)) {
      }
      return;
    }
  }
  // Removes the range that begins at `start`, if there is one; to be called before it is unmapped.
  static void remove(const void* start) noexcept {
    const std::size_t used = used_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < used; ++i) {
      auto address = reinterpret_cast<std::uint64_t>(start);
      if (entries_[i].start.compare_exchange_strong(address, 0)) return;
    }
  }
  // Removes all ranges. To be called in a forked child, which does not inherit most of that memory.
  static void forget_all() noexcept {
    for (Entry& entry : entries_) entry.start.store(0, std::memory_order_relaxed);
  }
  // Calls visit(start, bytes) for each range in the list: the address of its first byte, and its
  // size. The order is any. No lock is held, so `visit` may call the functions of this class.
  template <class Visit>
  static void each(const Visit& visit) {
    const std::size_t used = used_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < used; ++i) {
      const std::uint64_t start = entries_[i].start.load(std::memory_order_acquire);
      const std::uint64_t bytes = entries_[i].bytes.load(std::memory_order_acquire);
      // Another range may have got the entry meanwhile.
      if (start > being_filled && entries_[i].start.load(std::memory_order_relaxed) == start)
        visit(start, bytes);
    }
  }

 private:
  static constexpr std::size_t most = 4096;         // most ranges that `entries_` can hold
  static constexpr std::uint64_t being_filled = 1;  // value of Entry::start while it is filled in
  // A range of memory: its address and its size. The entry is free if `start` is 0.
  struct Entry {
    std::atomic<std::uint64_t> start{0}, bytes{0};
  };
  static Entry entries_[most];
  // Number of entries of `entries_`, from the first, that have ever been in use. The entries behind
  // them are free.
  static std::atomic<std::size_t> used_;
};

inline constinit OwnMemory::Entry OwnMemory::entries_[most]{};
inline constinit std::atomic<std::size_t> OwnMemory::used_{0};

}  // namespace cuwarden
