// Counters that threads change without locked instructions. A thread that records has a shard
// (class ThreadShard), which no other living thread has. It adds to the shard's counters by single
// instructions, so that a signal handler in between loses no count. A sum is made by adding up all
// shards.
//
// A group's row has the counters of the shard that made the group. If another shard counts in the
// group, it gets a row of type GroupShard. A program in which each call site allocates in one
// thread only has no such rows.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/core/thread_slot.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

class ThreadShard {
 public:
  // Number of series with a counter in each shard; further series have one counter for all shards.
  static constexpr std::size_t series_limit = 64;

  // Adds to one of this shard's counters. `amount` may be negative, in two's complement.
  void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) const noexcept {
    if (is_shared()) {
      counter.fetch_add(amount, std::memory_order_relaxed);
    } else {
      asm volatile("addq %1, %0" : "+m"(counter) : "er"(amount) : "cc");
    }
  }
  std::uint32_t number() const noexcept { return number_; }
  ThreadSlot slot() const noexcept { return {number_, tenancy_}; }
  // Returns true for the shard that threads without a shard of their own share.
  bool is_shared() const noexcept { return number_ == 0; }

  // --- credits (live_bytes.hpp), by row of series: freed bytes that the series does not know yet.
  // Only the shard's own thread adds credits; any thread may take them away. spend() uses `bytes`
  // of the credit and keep() adds to it, up to `largest`; false if there is too little, or too
  // much. take_credit() takes all.
  bool spend(std::size_t row, std::uint64_t bytes) noexcept {
    std::uint64_t credit = credits_[row].load(std::memory_order_relaxed);
    while (credit >= bytes) {
      if (credits_[row].compare_exchange_weak(credit, credit - bytes, std::memory_order_seq_cst))
        return true;
    }
    return false;
  }
  bool keep(std::size_t row, std::uint64_t bytes, std::uint64_t largest) noexcept {
    if (bytes > largest || credits_[row].load(std::memory_order_relaxed) > largest - bytes)
      return false;
    credits_[row].fetch_add(bytes, std::memory_order_seq_cst);
    return true;
  }
  std::uint64_t take_credit(std::size_t row) noexcept {
    if (credits_[row].load(std::memory_order_seq_cst) == 0) return 0;
    return credits_[row].exchange(0, std::memory_order_seq_cst);
  }

  // --- changes that the shard has not yet passed on to the slabs' pages (slab_pages.hpp), by row
  // of series. Only the shard's own thread uses them.
  std::atomic<std::uint64_t>& locked(std::size_t row) noexcept { return locked_[row]; }
  // A piece that was freed and not yet passed on to the pages; 0: none. change_freed_piece()
  // changes it in one instruction, if it has the expected value.
  std::uint64_t freed_piece() const noexcept {
    return freed_piece_.load(std::memory_order_relaxed);
  }
  bool change_freed_piece(std::uint64_t from, std::uint64_t to) noexcept {
    bool changed = false;
    asm volatile("cmpxchgq %3, %1"
                 : "=@ccz"(changed), "+m"(freed_piece_), "+a"(from)
                 : "r"(to)
                 : "cc", "memory");
    return changed;
  }

 private:
  friend class ThreadShards;
  static constexpr std::size_t remembered = 256;

  std::uint32_t number_;
  std::uint32_t tenancy_;                          // number of threads that have had this shard
  std::atomic<std::uint32_t> owner_;               // thread id; 0: not taken yet
  std::atomic<std::uint64_t>* calls_;              // counters by hook; null: there was no room
  std::size_t hooks_;                              // number of counters in calls_
  std::atomic<std::uint64_t> live_[series_limit];  // live allocations, by row of series
  std::atomic<std::uint64_t> credits_[series_limit];
  std::atomic<std::uint64_t> locked_[series_limit];
  std::atomic<std::uint64_t> freed_piece_;
  std::atomic<std::uint64_t>
      counter_rows_[remembered];  // cache by group: group << 32 | row of the counters
};

class ThreadShards {
 public:
  static constexpr std::uint32_t count = ThreadSlot::count;  // includes the shared one
  static_assert(count <= 256);

  explicit ThreadShards(Storage& storage) noexcept : storage_(storage) {}
  // Makes the shards; returns false if there is no memory. `serial`: differs for each writer of a
  // process. `pid`: the process's pid.
  bool create(std::uint32_t serial, std::uint32_t pid) noexcept;

  // Returns the calling thread's shard.
  ThreadShard& mine() noexcept {
    const Mine& mine = mine_;
    return __builtin_expect(mine.serial == serial_, true) ? *mine.shard : take();
  }
  // Row of the calling thread in the table of threads; 0 if it has none yet; `no_row` if there was
  // no room for one.
  static constexpr std::uint32_t no_row = UINT32_MAX;
  std::uint32_t my_row() const noexcept { return mine_.serial == serial_ ? mine_.row : 0; }
  // Sets the row that my_row() returns. Must not be called by a confined thread, since it has the
  // shared shard.
  void set_my_row(std::uint32_t row) noexcept {
    mine();
    mine_.row = row;
  }
  // Returns the group's counters that belong to this shard, and makes them if needed.
  Counters& counters_of(ThreadShard& shard, Group& group, GroupId id) noexcept {
    if (group.shard == shard.number_) return group.counters;
    const std::uint64_t known =
        shard.counter_rows_[id.value % ThreadShard::remembered].load(std::memory_order_relaxed);
    if (known >> 32 != id.value) return find_group_shard(shard, group, id);
    return storage_.rows<GroupShard>(RegionId::group_shards)[static_cast<std::uint32_t>(known)]
        .counters;
  }
  // Counts a call of a hook in the calling thread's shard.
  void count_call(HookId hook) noexcept {
    const ThreadShard& shard = mine();
    if (hook.value < shard.hooks_) {
      shard.add(shard.calls_[hook.value], 1);
    } else {
      count_for_all(hook);
    }
  }

  // Returns the number of shards that threads have taken so far, with the shared one.
  std::uint32_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  // Returns true if more than one thread's shard was ever taken.
  bool several() const noexcept { return used() > 2; }
  template <class Visit>
  void for_each(Visit visit) noexcept {
    const std::uint32_t used = used_.load(std::memory_order_seq_cst);
    for (std::uint32_t i = 1; i < used; ++i) visit(thread_shards()[i]);
  }

  // Counts live allocations of a series. `row`: the series' row.
  void add_live(ThreadShard& shard, Series& series, std::size_t row,
                std::uint64_t amount) noexcept {
    if (row < ThreadShard::series_limit && !shard.is_shared()) {
      shard.add(shard.live_[row], amount);
    } else {
      series.live_count.fetch_add(amount, std::memory_order_relaxed);
    }
  }
  // Returns the number of live allocations of a series, over all shards. `row`: the series' row.
  std::uint64_t live_count(const Series&, std::size_t row) const noexcept;

 private:
  struct Mine {
    ThreadShard* shard;
    std::uint32_t serial, row;
  };
  ThreadShard* thread_shards() const noexcept { return static_cast<ThreadShard*>(memory_.data()); }
  ThreadShard& take() noexcept;
  void count_for_all(HookId) noexcept;
  Counters& find_group_shard(ThreadShard&, Group&, GroupId) noexcept;

  [[gnu::tls_model("initial-exec")]] static constinit thread_local Mine mine_;

  Storage& storage_;
  Mapping memory_;
  std::uint32_t serial_ = 0;
  std::uint32_t pid_ = 0;
  std::atomic<std::uint32_t> used_{1};  // shards that were ever taken, including the shared one
};

}  // namespace cuwarden::ledger
