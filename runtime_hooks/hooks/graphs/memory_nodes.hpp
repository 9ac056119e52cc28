// Facts about graphs' memory nodes, in two hash tables of fixed size: the calls that made the
// nodes, and the effects that a launch of each executable graph has. A launch of an executable
// graph without memory nodes costs one load and takes no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::hooks {

// The calls that made allocation nodes, by the nodes' addresses. A graph's nodes are looked up when
// the graph is instantiated. When the table is full, a new node replaces the oldest one. Nodes of
// one graph may have the same address one after the other, so the latest few nodes of each address
// are kept.
class NodeMakers {
 public:
  // A call that made an allocation node: its group, and the node's size.
  struct Maker {
    GroupId group;
    std::uint64_t bytes = 0;
    std::uint64_t order = 0;  // rises from node to node; never 0
  };
  static constexpr std::size_t most_of_one_address = 8;  // nodes that are kept for an address

  // Stores that a call of this group made a node for `bytes` at `address`.
  void made(std::uint64_t address, std::uint64_t bytes, GroupId) noexcept;
  // Fills `to` with the makers of the nodes at this address, the latest first. Returns the number
  // of makers.
  std::size_t makers_of(std::uint64_t address, Maker (&to)[most_of_one_address]) noexcept;
  // True once a thread has given up on the lock: facts are missing from the table since then.
  bool left() const noexcept { return left_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t limit = 4096, buckets = 4096;
  struct Node {
    std::uint64_t address = 0;
    Maker maker;
    std::uint16_t next = 0;  // next older node of the same bucket, as row + 1; 0: none
  };
  static std::size_t bucket_of(std::uint64_t address) noexcept {
    return hash_pair(address, 0) % buckets;
  }
  void unlink(Node&) noexcept;

  std::atomic<bool> left_{false};
  FutexLock lock_;  // a leaf: while it is held, no other lock is taken and nothing foreign called
  std::size_t oldest_ = 0;
  std::uint64_t made_ = 0;  // number of nodes made so far
  std::uint16_t first_[buckets]{};
  Node nodes_[limit]{};
};

// One allocation, or one free, that each launch of an executable graph does.
struct Effect {
  std::uint64_t exec = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  GroupId group;
  bool allocates = false;
};

// The effects of all executable graphs, by the number of the graph (`exec`: its CUgraphExec).
class ExecEffects {
 public:
  // Returns false if there is no room.
  bool add(const Effect&) noexcept;
  void forget(std::uint64_t exec) noexcept;
  // True once a thread has given up on the lock: effects are missing from the table since then.
  bool left() const noexcept { return left_.load(std::memory_order_relaxed); }

  // Returns false only if `exec` has no effects; true if it may have some.
  bool any(std::uint64_t exec) const noexcept {
    return first_[bucket_of(exec)].load(std::memory_order_acquire) != 0;
  }

  // Calls apply(effect) for the allocations of `exec`, or for its frees. The effect that was added
  // last comes first. The lock is not held during apply().
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
    std::uint16_t next = 0;  // next row of the same bucket or of the free rows, as row + 1; 0: none
  };
  static std::size_t bucket_of(std::uint64_t exec) noexcept { return hash_pair(exec, 0) % buckets; }
  // Copies effects of `exec` that come after row `at` (0: from the first one) into `to`, as many as
  // fit, and returns their number. Sets `at` to the last row that was copied, or to 0 at the end.
  std::size_t copy(std::uint64_t exec, bool allocates, std::uint16_t& at,
                   Effect (&to)[32]) noexcept;

  std::atomic<bool> left_{false};
  FutexLock lock_;
  std::uint16_t free_ = 0;
  std::uint16_t used_ = 0;  // number of rows that were ever in use
  std::atomic<std::uint16_t> first_[buckets]{};
  Row rows_[limit]{};
};

}  // namespace cuwarden::hooks
