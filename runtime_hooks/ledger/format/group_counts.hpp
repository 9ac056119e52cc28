// Adds up the counters of a group (all allocations with the same call stack, function, kind and
// device) over the shards of all threads. Used by the writer of a ledger and by its readers.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/ledger/format/longest_life.hpp"

namespace cuwarden::ledger {

// Returns the number of call counters, of 8 bytes each, that one thread's shard has in the region
// RegionId::shard_calls. `hooks`: number of hooks, each of which needs one counter. The result is
// rounded up to whole cache lines, so that no two shards share a cache line.
constexpr std::uint64_t calls_in_shard(std::uint64_t hooks) { return (hooks + 7) / 8 * 8; }

// The counters of one group (all allocations with the same call stack, function, kind and device),
// summed up over the shards of all threads.
struct GroupCounts {
  // Number and bytes of the allocations since the process began.
  std::uint64_t allocations = 0, allocated_bytes = 0;
  // Frees since the process began. An allocation that ended with its context counts as no free.
  std::uint64_t frees = 0;
  // Number and bytes of the group's allocations that were neither freed nor released by the end of
  // their context.
  std::uint64_t live_count = 0, live_bytes = 0;
  std::uint64_t last_ns = 0;  // time of the last allocation, since process start; 0: there was none
  LongestLife longest_life;   // longest life of the allocations that the program has freed
};

// Returns the sums of a group's counters over all shards (each thread's part of the counters). If
// other threads free memory meanwhile, reads the counters again, up to 16 times in all. If they do
// so the last time, too, the live count and bytes may be too low. `group_row`: row of `group` in
// the groups table. `shard_at(row)` returns a pointer to this row of the table of GroupShards; null
// if the ledger has no such row.
template <class ShardAt>
GroupCounts counts_of(const Group& group, std::uint32_t group_row, ShardAt shard_at) noexcept {
  // A group has at most one GroupShard for each shard. A damaged list may be longer, or a ring.
  constexpr int most_shards = 128;
  const auto get = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_acquire);
  };
  const auto for_each = [&](auto visit) {
    visit(group.counters);
    std::uint32_t row = group.first_shard.load(std::memory_order_acquire);
    for (int i = 0; i < most_shards && row != 0; ++i) {
      const GroupShard* const group_shard = shard_at(row);
      if (group_shard == nullptr || load_field(group_shard->group) != group_row) break;
      visit(group_shard->counters);
      row = load_field(group_shard->next);
    }
  };
  struct Gone {
    std::uint64_t frees = 0;             // allocations that the program has freed
    std::uint64_t count = 0, bytes = 0;  // allocations that have ended in any way, and their bytes
    bool operator==(const Gone&) const = default;
  };
  const auto sum_gone = [&] {
    Gone gone;
    for_each([&](const Counters& counters) {
      gone.frees += get(counters.frees);
      gone.bytes += get(counters.freed_bytes);
    });
    gone.count = gone.frees + get(group.released_count);
    gone.bytes += get(group.released_bytes);
    return gone;
  };

  // The freed counts must be equal before and after the allocated counts are read; otherwise try
  // again.
  constexpr int attempts = 16;
  GroupCounts sum;
  Gone gone = sum_gone();
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const Gone before = gone;
    sum.allocations = sum.allocated_bytes = 0;
    sum.longest_life = LongestLife();
    for_each([&](const Counters& counters) {
      sum.allocations += get(counters.allocations);
      sum.allocated_bytes += get(counters.allocated_bytes);
      sum.longest_life.add(LongestLife(get(counters.longest_life)));
      if (const std::uint64_t last = get(counters.last_ns); last > sum.last_ns) sum.last_ns = last;
    });
    gone = sum_gone();
    if (gone == before) break;
  }
  const auto left = [](std::uint64_t came, std::uint64_t went) {
    return came > went ? came - went : 0;
  };
  sum.frees = gone.frees;
  sum.live_count = left(sum.allocations, gone.count);
  sum.live_bytes = left(sum.allocated_bytes, gone.bytes);
  return sum;
}

}  // namespace cuwarden::ledger
