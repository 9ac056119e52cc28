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

// A table of the program's calls that made graphs' allocation nodes. The key is the address that a
// node allocates. The table is read when a graph is instantiated. In a full table, a new node
// replaces one of the oldest.
//
// Nodes of one graph may have the same address, one after the other, so up to eight nodes of each
// address are kept, the latest ones. All functions may be called by several threads at once.
class NodeMakers {
 public:
  // An allocation node of a graph: the group of the program's call that made it, its size, and its
  // number in the order of nodes.
  struct Maker {
    // The ledger's group for the program's call; 0: the ledger had no room for a group.
    GroupId group;
    std::uint64_t bytes = 0;  // Bytes that the node allocates at each launch of its graph.
    std::uint64_t order = 0;  // Number of the node among all nodes ever entered, from 1.
  };
  // Largest number of nodes with one address that stay in the table. A further node with the
  // address replaces the oldest of them.
  static constexpr std::size_t most_of_one_address = 8;

  // Enters a node that allocates `bytes` at `address`. `GroupId` is the ledger's group for
  // allocations by the call that made the node. If the table's lock cannot be had, nothing is
  // entered, and left() becomes true.
  void made(std::uint64_t address, std::uint64_t bytes, GroupId) noexcept;
  // Fills `to` with the program's calls that made the nodes of this address in the table, the
  // latest first. Returns the number of calls; 0 also if the table's lock cannot be had.
  std::size_t makers_of(std::uint64_t address, Maker (&to)[most_of_one_address]) noexcept;
  // True once the table's lock could not be had, because a thread has left it locked. Since then
  // nodes may be missing from the table.
  bool left() const noexcept { return left_.load(std::memory_order_relaxed); }

 private:
  // Most nodes in the table, and number of its hash buckets.
  static constexpr std::size_t limit = 4096, buckets = 4096;
  // An allocation node of a graph, with the program's call that made it: a row of the table. The
  // rows of each hash bucket form a list.
  struct Node {
    std::uint64_t address = 0;  // the address that the graph node allocates; 0: never used
    Maker maker;                // the program's call that made the graph node
    // Number (index in nodes_ plus 1) of the next older row in this row's hash bucket; 0 if there
    // is none.
    std::uint16_t next = 0;
  };
  // Returns the index of the hash bucket for nodes with this address.
  static std::size_t bucket_of(std::uint64_t address) noexcept {
    return hash_pair(address, 0) % buckets;
  }
  // Takes `Node`, a row of nodes_, out of the list of its hash bucket. The caller holds `lock_`.
  void unlink(Node&) noexcept;

  // Result of left(): true once a thread could not take `lock_`.
  std::atomic<bool> left_{false};
  // Guards the table of nodes. While a thread holds the lock, it takes no other lock, and calls
  // neither the driver nor the program.
  FutexLock lock_;
  // Index in `nodes_` of the row that the next node is written to. It then moves on by one row, and
  // from the last row to the first. If eight rows have the new node's address already, the node is
  // written to the earliest of those rows, and the index stays. So a row that is next in turn may
  // hold a newer node than other rows do.
  std::size_t oldest_ = 0;
  std::uint64_t made_ = 0;  // Number of nodes that were ever entered into the table.
  // For each hash bucket, the number (index in nodes_ plus 1) of its latest row; 0 if the bucket is
  // empty.
  std::uint16_t first_[buckets]{};
  // Rows of the table: one for each node. A row's number is its index plus 1.
  Node nodes_[limit]{};
};

// One allocation or one free that each launch of an executable graph does.
struct Effect {
  std::uint64_t exec = 0;     // The executable graph: its CUgraphExec; 0: there is no effect.
  std::uint64_t address = 0;  // Start of the memory that a launch allocates or frees.
  std::uint64_t bytes = 0;    // Bytes that a launch allocates; 0 for a free.
  GroupId group;  // The ledger's group for the memory; 0 for a free, or if the ledger had no room.
  bool allocates = false;  // True for an allocation, false for a free.
};

// A table of effects: the allocations and frees that launches of executable graphs make. The key is
// the graph's CUgraphExec as a number, `exec`. All functions may be called by several threads at
// once.
class ExecEffects {
 public:
  // Adds an effect, which is an allocation or a free that each launch of the executable graph
  // Effect::exec makes. Returns false if the table is full or its lock cannot be had.
  bool add(const Effect&) noexcept;
  // Removes all effects of the graph `exec`. If the table's lock cannot be had, removes nothing,
  // and left() becomes true: the table may be wrong from then on.
  void forget(std::uint64_t exec) noexcept;
  // True once the table's lock could not be had, because a thread has left it locked. Since then
  // the table may be wrong.
  bool left() const noexcept { return left_.load(std::memory_order_relaxed); }

  // False if launches of `exec` allocate and free nothing; true if they may. Costs one load.
  bool any(std::uint64_t exec) const noexcept {
    return first_[bucket_of(exec)].load(std::memory_order_acquire) != 0;
  }

  // Calls apply(effect) for each allocation of a launch of `exec` (`allocates` true) or for each
  // free (`allocates` false). The effect that was added last comes first. The table's lock is not
  // held during apply(). If the lock cannot be had, no further effect is visited.
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
  // Most effects in the table, and number of its hash buckets.
  static constexpr std::size_t limit = 4096, buckets = 16384;
  // An allocation or free that launches of an executable graph make: a row of the table. The rows
  // of each hash bucket form a list, and so do rows that forget() emptied.
  struct Row {
    // The allocation or free. In rows that forget() has emptied, and in rows that were never used,
    // it is Effect{}, whose `exec` is 0.
    Effect effect;
    // Number (index in rows_ plus 1) of the next row in this row's list: that of its hash bucket,
    // or of emptied rows. 0 if there is none.
    std::uint16_t next = 0;
  };
  // Returns the index of the hash bucket for effects of the graph `exec`.
  static std::size_t bucket_of(std::uint64_t exec) noexcept { return hash_pair(exec, 0) % buckets; }
  // Copies effects of `exec` to `to`, either allocations or frees, as many as fit, and returns
  // their number. Begins after the row with the number `at`; 0: at the first row. If `to` is full,
  // sets `at` to the number of the last row that was copied; otherwise to 0. Copies nothing if the
  // lock cannot be had, or if the row `at` belongs to another graph by now.
  std::size_t copy(std::uint64_t exec, bool allocates, std::uint16_t& at,
                   Effect (&to)[32]) noexcept;

  // Result of left(): true once a thread could not take `lock_`.
  std::atomic<bool> left_{false};
  // Guards the table of effects: its rows and lists. While a thread holds the lock, it calls
  // neither the driver nor the program.
  FutexLock lock_;
  // Number (index in rows_ plus 1) of the first row in the list of emptied rows; 0: the list is
  // empty.
  std::uint16_t free_ = 0;
  // Number of rows that were ever in use, including emptied ones: the first ones of `rows_`.
  std::uint16_t used_ = 0;
  // For each hash bucket, the number (index in rows_ plus 1) of its first row; 0 if the bucket is
  // empty.
  std::atomic<std::uint16_t> first_[buckets]{};
  // Rows of the table: one for each effect. A row's number is its index plus 1.
  Row rows_[limit]{};
};

}  // namespace cuwarden::hooks
