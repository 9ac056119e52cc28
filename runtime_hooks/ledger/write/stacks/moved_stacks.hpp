// A cache of stacks that came back at other addresses, since a file of theirs was unloaded and
// loaded again. It finds them by their new addresses. The cache is bounded and in this process's
// memory only. A stack that it lacks is found by the offsets in its files, which takes a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

class MovedStacks {
 public:
  static constexpr std::size_t most_frames = 128;  // deeper stacks are not kept

  // Returns the row of the stack that has these frames now; 0 if none is known. Takes no lock.
  std::uint32_t find(std::uint64_t hash, std::span<const Frame> frames,
                     bool truncated) const noexcept;

  // insert() and retire() must be called under the stack table's lock. insert() stores that the
  // stack in `row` has these frames now.
  void insert(std::uint64_t hash, std::span<const Frame> frames, bool truncated,
              std::uint32_t row) noexcept;
  // Removes the stacks that have a frame in [start, end).
  void retire(std::uint64_t start, std::uint64_t end) noexcept;

 private:
  static constexpr std::size_t entry_count = 512;
  struct Entry {
    std::atomic<std::uint32_t> version;  // odd while the entry changes
    std::atomic<std::uint32_t> row;      // 0: empty
    std::atomic<std::uint32_t> count;
    std::atomic<std::uint32_t> truncated;
    std::atomic<std::uint64_t> hash;
    std::atomic<std::uint64_t> frames[most_frames];
  };
  Entry* entries() const noexcept { return entries_.load(std::memory_order_acquire); }

  std::atomic<Entry*> entries_{nullptr};  // made when the first stack has moved
};

}  // namespace cuwarden::ledger
