// Facts about graphs' memory nodes, in tables of fixed size: which call made a node, and what each
// executable graph allocates and frees at a launch. Both are found by hash; an executable
// graph without memory nodes costs one load, and no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::hooks {

// The calls that made allocation nodes, by the nodes' addresses. Asked once, when a graph is
// instantiated; when the table is full, the oldest node makes room. Nodes of one graph may share an
// address, one after the other, so that the latest few of an address are kept.
class NodeMakers {
 public:
  struct Maker {
    GroupId group;
    std::uint64_t bytes = 0;
    std::uint64_t order = 0;  // rises from node to node; never 0
  };
  static constexpr std::size_t most_of_one_address = 8;

  void made(std::uint64_t address, std::uint64_t bytes, GroupId) noexcept;
  // Fills `to` with the makers of the nodes at this address, the latest first; returns their
  // number.
  std::size_t makers_of(std::uint64_t address, Maker (&to)[most_of_one_address]) noexcept;
  // True once the lock was given up: the table is no longer kept.
  bool left() const noexcept { return left_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t limit = 4096, buckets = 4096;
  struct Node {
    std::uint64_t address = 0;
    Maker maker;
    std::uint16_t next = 0;  // an older one of the same bucket; row + 1
  };
  static std::size_t bucket_of(std::uint64_t address) noexcept {
    return hash_pair(address, 0) % buckets;
  }
  void unlink(Node&) noexcept;

  std::atomic<bool> left_{false};
  FutexLock lock_;  // a leaf: nothing else is locked and no foreign call is made below it
  std::size_t oldest_ = 0;
  std::uint64_t made_ = 0;  // nodes
  std::uint16_t first_[buckets]{};
  Node nodes_[limit]{};
};

// One memory node of an executable graph.
struct Effect {
  std::uint64_t exec = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  GroupId group;
  bool allocates = false;
};

class ExecEffects {
 public:
  // False: no room.
  bool add(const Effect&) noexcept;
  void forget(std::uint64_t exec) noexcept;
  bool left() const noexcept { return left_.load(std::memory_order_relaxed); }

  // Whether `exec` may have effects. Never wrong where it says no.
  bool any(std::uint64_t exec) const noexcept {
    return first_[bucket_of(exec)].load(std::memory_order_acquire) != 0;
  }

  // Calls apply(effect) for the effects of one sort, unlocked; the last one that was added comes
  // first.
  template <class Apply>
  void for_each(std::uint64_t exec, bool allocates, Apply apply) noexcept {
    if (!any(exec)) return;
    Effect some[32];
    std::uint16_t at = 0;
    do {
      const std::size_t count = copy(exec, allocates, at, some);
      for (std::size_t i = 0; i < count; ++i) apply(some[i]);
    } while (at != 0);
  }

 private:
  static constexpr std::size_t limit = 4096, buckets = 16384;
  struct Row {
    Effect effect;
    std::uint16_t next = 0;  // of the same bucket, or of the free rows; row + 1
  };
  static std::size_t bucket_of(std::uint64_t exec) noexcept { return hash_pair(exec, 0) % buckets; }
  // As many as fit, from the one behind `at` on; leaves `at` at the last one, or 0 when all are.
  std::size_t copy(std::uint64_t exec, bool allocates, std::uint16_t& at,
                   Effect (&to)[32]) noexcept;

  std::atomic<bool> left_{false};
  FutexLock lock_;
  std::uint16_t free_ = 0;
  std::uint16_t used_ = 0;  // rows that were ever in use
  std::atomic<std::uint16_t> first_[buckets]{};
  Row rows_[limit]{};
};

}  // namespace cuwarden::hooks
