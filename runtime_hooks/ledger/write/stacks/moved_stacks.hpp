// A cache of moved call stacks. A stack has moved if a file of its frames was unloaded and loaded
// again at other addresses since the stack was stored. The cache finds such stacks by their present
// addresses, without a lock. It is bounded, and in this process's memory only. The stack table
// finds a stack that the cache lacks by the offsets in its files, which takes a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

// Maps the present addresses of moved call stacks to their rows in the stacks table. A stack has
// moved if a file of its frames was unloaded and loaded again elsewhere.
class MovedStacks {
 public:
  static constexpr std::size_t most_frames = 128;  // stacks with more frames are not cached

  // Returns the row in the stacks table of the moved stack that has these frames at present.
  // Returns 0 if the cache lacks the stack, or if another thread is changing the stack's entry.
  // `hash`: hash of `frames` and `truncated`, computed as for insert(). `truncated`: true if outer
  // frames were cut off. Takes no lock.
  std::uint32_t find(std::uint64_t hash, std::span<const Frame> frames,
                     bool truncated) const noexcept;

  // Adds a moved stack, which has these frames at present. `row`: row of the stack in the stacks
  // table. Another stack may leave the cache to make room. Does nothing if there are more than
  // most_frames frames, or if there is no memory. `hash`: hash of `frames` and `truncated`.
  // `truncated`: true if outer frames were cut off. The caller holds the stack table's lock.
  void insert(std::uint64_t hash, std::span<const Frame> frames, bool truncated,
              std::uint32_t row) noexcept;
  // Removes all stacks with a frame at the addresses [start, end) from the cache, because the
  // module there was unloaded. The stacks stay in the ledger. The caller holds the stack table's
  // lock.
  void retire(std::uint64_t start, std::uint64_t end) noexcept;

 private:
  static constexpr std::size_t entry_count = 512;  // number of stacks that the cache can hold
  // A stack of the cache. Its index is its hash modulo entry_count.
  struct Entry {
    std::atomic<std::uint32_t> version;    // seqlock of the entry: odd while the entry changes
    std::atomic<std::uint32_t> row;        // the stack's row in the stacks table; 0: entry is empty
    std::atomic<std::uint32_t> count;      // number of the stack's frames
    std::atomic<std::uint32_t> truncated;  // 1: outer frames of the stack were cut off; else 0
    // Hash of the stack's present frames and of `truncated`, as insert() was given it.
    std::atomic<std::uint64_t> hash;
    // Present addresses of the stack's frames, innermost first. The first `count` are in use.
    std::atomic<std::uint64_t> frames[most_frames];
  };
  // Returns the array of entry_count entries; null before the first insert().
  Entry* entries() const noexcept { return entries_.load(std::memory_order_acquire); }

  // The array of entry_count entries; null until the first insert(). It is never unmapped.
  std::atomic<Entry*> entries_{nullptr};
};

}  // namespace cuwarden::ledger
