// An index of a ledger table whose rows are never removed: maps hashes to row numbers. A lookup
// takes no lock; an insertion holds the index's lock. Open addressing with slots of 8 bytes (half a
// hash, a row).
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"

namespace cuwarden::ledger {

// Maps hashes of a ledger table's rows to their row numbers, from 1. Several rows may have one
// hash.
class IdTable {
 public:
  // Maps memory for the index's first slots; must be called before other functions. Returns false
  // if there is no memory.
  bool create() noexcept {
    Mapping memory = Mapping::anonymous(page_bytes * 2);
    if (!memory) return false;
    auto* const slots = static_cast<Slots*>(memory.data());
    slots->mask = (memory.size() / 2 / sizeof(slots->slot[0])) - 1;
    memory.release();
    slots_.store(slots, std::memory_order_release);
    return true;
  }

  // Returns a row for which matches(row) returns true; 0 if there is none. Calls matches() only for
  // rows whose hashes have the upper 32 bits of `hash`. Takes no lock, so it may miss a row that
  // another thread is inserting. A caller that wants to insert a row takes lock() and searches
  // again.
  template <class Matches>
  std::uint32_t find(std::uint64_t hash, const Matches& matches) const noexcept {
    const Slots* const slots = slots_.load(std::memory_order_acquire);
    const std::uint64_t mask = slots->mask;
    const std::uint64_t tag = tag_of(hash);
    for (std::uint64_t i = tag & mask;; i = (i + 1) & mask) {
      const std::uint64_t slot = slots->slot[i].load(std::memory_order_acquire);
      if (slot == 0) return 0;
      const auto row = static_cast<std::uint32_t>(slot);
      if (slot >> 32 == tag && row != retired && matches(row)) return row;
    }
  }

  // Returns the lock that callers of insert() and retire() hold.
  FutexLock& lock() noexcept { return lock_; }

  // Adds to this index a row of the indexed table, whose contents have this hash. Several rows may
  // have one hash. The caller holds lock(). If the slots are full and there is no memory for more,
  // the row is left out, and find() will not return it.
  void insert(std::uint64_t hash, std::uint32_t row) noexcept {
    Slots* slots = slots_.load(std::memory_order_relaxed);
    if (replace(*slots, tag_of(hash) << 32 | retired, tag_of(hash) << 32 | row)) return;
    if ((count_ + 1) * 2 > slots->mask + 1) {
      if (Slots* const larger = grown(*slots)) slots = larger;
    }
    if (count_ == slots->mask) return;  // one slot stays empty, at which searches end
    put(*slots, tag_of(hash) << 32 | row);
    ++count_;
  }

  // Removes this row with this hash from the index, so that find() no longer returns it. The caller
  // holds lock(). The row may be inserted again later.
  void retire(std::uint64_t hash, std::uint32_t row) noexcept {
    replace(*slots_.load(std::memory_order_relaxed), tag_of(hash) << 32 | row,
            tag_of(hash) << 32 | retired);
  }

 private:
  // Row number in a slot whose row was removed by retire(). The slot keeps the row's half of a
  // hash.
  static constexpr std::uint32_t retired = UINT32_MAX;

  // The index's hash table, at the start of a mapping of its own.
  struct Slots {
    std::uint64_t mask;  // number of slots - 1
    // The hash table's mask + 1 slots; only the first lies inside the object, the others behind it.
    // Upper 32 bits of a slot: upper half of a row's hash. Lower 32 bits: the row. A slot of 0 is
    // empty.
    std::atomic<std::uint64_t> slot[1];
  };

  // Returns the upper half of a row's hash, which a slot keeps.
  static std::uint64_t tag_of(std::uint64_t hash) noexcept { return hash >> 32; }

  // Stores `value` (half a hash and a row) in an empty slot, of which there must be one.
  static void put(Slots& slots, std::uint64_t value) noexcept {
    std::uint64_t i = (value >> 32) & slots.mask;
    while (slots.slot[i].load(std::memory_order_relaxed) != 0) i = (i + 1) & slots.mask;
    slots.slot[i].store(value, std::memory_order_release);
  }

  // Finds the slot that has `value` (half a hash and a row), and stores `by` in it. Returns false
  // if no slot has `value`.
  static bool replace(Slots& slots, std::uint64_t value, std::uint64_t by) noexcept {
    for (std::uint64_t i = (value >> 32) & slots.mask;; i = (i + 1) & slots.mask) {
      const std::uint64_t slot = slots.slot[i].load(std::memory_order_relaxed);
      if (slot == 0) return false;
      if (slot != value) continue;
      slots.slot[i].store(by, std::memory_order_release);
      return true;
    }
  }

  // Makes a hash table with twice as many slots, copies the used slots, and lets the index use it.
  // Returns the new table. If there is no memory, returns null and changes nothing.
  Slots* grown(Slots& old) noexcept {
    const std::uint64_t capacity = (old.mask + 1) * 2;
    const std::size_t bytes = sizeof(Slots) + capacity * sizeof(old.slot[0]);
    Mapping memory = Mapping::anonymous(bytes);
    if (!memory) return nullptr;
    auto* const larger = static_cast<Slots*>(memory.data());
    larger->mask = capacity - 1;
    count_ = 0;
    for (std::uint64_t i = 0; i <= old.mask; ++i) {
      const std::uint64_t slot = old.slot[i].load(std::memory_order_relaxed);
      if (slot == 0 || static_cast<std::uint32_t>(slot) == retired) continue;
      put(*larger, slot);
      ++count_;
    }
    memory.release();
    // The old table stays mapped, because lookups may still be inside it.
    slots_.store(larger, std::memory_order_release);
    return larger;
  }

  std::atomic<Slots*> slots_{nullptr};  // the hash table; null before create()
  std::uint64_t count_ = 0;             // slots that are not empty; slots of retired rows count
  FutexLock lock_;                      // the lock that lock() returns
};

}  // namespace cuwarden::ledger
