// Counters that threads change without locked instructions. Each recording thread has a shard
// (class ThreadShard) that no other living thread has. It adds to the shard's counters by single
// instructions, so that a signal handler in between loses no count. Readers add up all shards.
//
// A group's row has the counters of the shard that made the group. For each other shard that counts
// in the group, the group has a row of type GroupShard. A program in which each call site allocates
// in one thread only has no rows of this type.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/core/thread_slot.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// One thread's part of the counters that all threads change: calls of each hook; live allocations,
// freed bytes and changes of locked bytes of each series (all memory of one kind on one device).
// Zero-filled memory is a valid object without an owner.
class ThreadShard {
 public:
  // Number of series (all memory of one kind on one device) that have counters in the shards: those
  // in rows below this one. Each further series has one counter that all threads share.
  static constexpr std::size_t series_limit = 64;

  // Adds `amount` to a counter that belongs to this shard (one thread's part of the counters). Only
  // the shard's thread may call this function. A negative amount is given in two's complement.
  void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) const noexcept {
    if (is_shared()) {
      counter.fetch_add(amount, std::memory_order_relaxed);
    } else {
      asm volatile("addq %1, %0" : "+m"(counter) : "er"(amount) : "cc");
    }
  }
  // Returns the shard's index: 0 for the shared shard, others from 1.
  std::uint32_t number() const noexcept { return number_; }
  // Returns the shard's index, and the number of threads that have had the shard so far, which
  // tells its present thread from earlier ones. Both are 0 for the shared shard.
  ThreadSlot slot() const noexcept { return {number_, tenancy_}; }
  // Returns true for shard 0, which all threads without a shard of their own share.
  bool is_shared() const noexcept { return number_ == 0; }

  // --- Credits: freed bytes of a series that its counter does not know yet (live_bytes.hpp). Only
  // the shard's own thread adds credits; any thread may take them away. `row`: the series' row.

  // Takes `bytes` from the shard's credit (freed bytes that the series' counter does not know yet)
  // for the series in this row of its table, below series_limit. Returns false, and takes nothing,
  // if the credit is smaller.
  bool spend(std::size_t row, std::uint64_t bytes) noexcept {
    std::uint64_t credit = credits_[row].load(std::memory_order_relaxed);
    while (credit >= bytes) {
      if (credits_[row].compare_exchange_weak(credit, credit - bytes, std::memory_order_seq_cst))
        return true;
    }
    return false;
  }
  // Adds `bytes`, which the thread has freed, to the shard's credit (freed bytes that the series'
  // counter does not know yet) for the series in this row, below series_limit. Returns false, and
  // adds nothing, if the credit would exceed `largest` bytes.
  bool keep(std::size_t row, std::uint64_t bytes, std::uint64_t largest) noexcept {
    if (bytes > largest || credits_[row].load(std::memory_order_relaxed) > largest - bytes)
      return false;
    credits_[row].fetch_add(bytes, std::memory_order_seq_cst);
    return true;
  }
  // Returns the shard's credit for the series in this row (below series_limit): freed bytes that
  // the series' counter does not know yet.
  std::uint64_t credit(std::size_t row) const noexcept {
    return credits_[row].load(std::memory_order_relaxed);
  }
  // Sets the shard's credit for the series in this row (below series_limit) to 0. Returns the
  // credit's former value: freed bytes that the caller must subtract from the series' counter.
  std::uint64_t take_credit(std::size_t row) noexcept {
    if (credits_[row].load(std::memory_order_seq_cst) == 0) return 0;
    return credits_[row].exchange(0, std::memory_order_seq_cst);
  }

  // --- Changes that class SlabPages keeps in the shard before it makes them in the ledger. Only
  // the shard's own thread makes them.

  // Returns the shard's counter of changes of a series' locked bytes (free bytes in partly live
  // slabs). It has the sum of those changes that were not added to Series::slab_locked_bytes yet; a
  // negative sum is in two's complement. `row`: the series' row, below series_limit.
  std::atomic<std::uint64_t>& locked(std::size_t row) noexcept { return locked_[row]; }
  // Returns a small allocation that the shard's thread has freed, although the counts of the slab
  // page in which it lay still have it as live. The allocation is packed into one word by
  // SlabPages::Piece. 0: there is none.
  std::uint64_t freed_piece() const noexcept {
    return freed_piece_.load(std::memory_order_relaxed);
  }
  // If freed_piece() is `from`, changes it to `to` (both packed by SlabPages::Piece; 0: none) and
  // returns true. Otherwise changes nothing and returns false. One instruction, so that a signal
  // handler of the thread sees the old or the new value.
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
  static constexpr std::size_t remembered = 256;  // number of entries of the cache counter_rows_

  std::uint32_t number_;   // index of this shard; 0: the shard that threads share
  std::uint32_t tenancy_;  // number of threads that have had this shard so far
  // The kernel's id of the last thread that had the shard; 0: none had.
  std::atomic<std::uint32_t> owner_;
  // Serial number of the hooked call that the thread is inside (call_begins()); 0: none. In the
  // shared shard: the number of calls that threads are inside.
  std::atomic<std::uint64_t> in_call_;
  // The shard's counters of calls, by HookId, in the ledger. Null in the shared shard, in a shard
  // that was never used, and if the ledger had no room for them. Calls then count in Hook::calls.
  std::atomic<std::uint64_t>* calls_;
  std::size_t hooks_;  // number of the shard's counters of calls, in calls_; 0 if calls_ is null
  // Allocations less frees that this shard has counted for each series, by the series' row; in
  // two's complement.
  std::atomic<std::uint64_t> live_[series_limit];
  // The shard's credit for each series, by the series' row: freed bytes that the series' counter
  // does not know yet.
  std::atomic<std::uint64_t> credits_[series_limit];
  // Sum of the changes of each series' locked bytes that were not added to
  // Series::slab_locked_bytes yet, by the series' row; in two's complement.
  std::atomic<std::uint64_t> locked_[series_limit];
  // Small allocation that the thread has freed, but that its slab page still counts as live. Packed
  // by SlabPages::Piece; 0: none.
  std::atomic<std::uint64_t> freed_piece_;
  // Cache of the row numbers of the shard's GroupShards: group << 32 | row, at index group modulo
  // `remembered`; 0: empty, since groups start at 1.
  std::atomic<std::uint64_t> counter_rows_[remembered];
};

// All shards (each thread's part of the counters) of a ledger's writer. A thread takes a shard with
// its first call, and keeps it until the thread ends; then another thread may take the shard.
class ThreadShards {
 public:
  // Number of shards, including shard 0, which threads without a shard of their own share.
  static constexpr std::uint32_t count = ThreadSlot::count;
  static_assert(count <= 256);

  // `storage`: the memory of the ledger, which holds the groups' counters; must outlive the object.
  explicit ThreadShards(Storage& storage) noexcept : storage_(storage) {}
  // Makes the shards; must be called before other functions. `serial`: a number from 1 that no
  // other ledger writer of the process has. `pid`: pid of the recorded process; in vfork
  // children, which share its memory, no thread takes a shard of its own. Returns false if there is
  // no memory.
  bool create(std::uint32_t serial, std::uint32_t pid) noexcept;

  // Returns the calling thread's shard (its part of the counters). Returns the shared one (shard 0)
  // if living threads have all others. Also does so for a thread that has no shard yet and is
  // confined (seccomp), or is in a vfork child. If the thread that called vfork() has a shard, the
  // child uses that shard.
  ThreadShard& mine() noexcept {
    const Mine& mine = mine_;
    return __builtin_expect(mine.serial == serial_, true) ? *mine.shard : take();
  }
  // Result of my_row() for a thread for which the ledger's threads table had no room.
  static constexpr std::uint32_t no_row = UINT32_MAX;
  // Returns the calling thread's row in the ledger's threads table, as set_my_row() has set it; 0
  // if it was not set, no_row if the table had no room.
  std::uint32_t my_row() const noexcept { return mine_.serial == serial_ ? mine_.row : 0; }
  // Sets the value that my_row() returns for the calling thread: its row in the ledger's threads
  // table, or no_row if the table has no room. A confined thread (seccomp) must not call this
  // function.
  void set_my_row(std::uint32_t row) noexcept {
    mine();
    mine_.row = row;
  }
  // Returns the counters of the group `id` that only the thread of `shard` changes. `shard`: the
  // calling thread's part of the counters. `group`: the group's row. The counters are made at the
  // first call. If there is no room for them, returns the counters of the shard that made the
  // group, and the ledger gets reason_ledger_full.
  Counters& counters_of(ThreadShard& shard, Group& group, GroupId id) noexcept {
    if (group.shard == shard.number_) return group.counters;
    const std::uint64_t known =
        shard.counter_rows_[id.value % ThreadShard::remembered].load(std::memory_order_relaxed);
    if (known >> 32 != id.value) return find_group_shard(shard, group, id);
    return storage_.rows<GroupShard>(RegionId::group_shards)[static_cast<std::uint32_t>(known)]
        .counters;
  }
  // Counts a call of a hook in the calling thread's shard, or in the hook's row if the shard has no
  // counter for it. Ignores a number that no hook has.
  void count_call(HookId hook) noexcept { count_call(mine(), hook); }

  // Counts a call as count_call() does, and notes that the calling thread is inside a hooked call
  // until call_ends(). `serial`: a number from 1 with which others_in_calls() tells early calls
  // from later ones. A later call has the same number or a higher one. If a longjmp leaves the
  // call, call_ends() is not called. A thread with a shard of its own then counts as inside the
  // call until its next call ends. For a thread without one, the shared shard counts one call too
  // many from then on.
  void call_begins(HookId hook, std::uint64_t serial) noexcept {
    ThreadShard& shard = mine();
    count_call(shard, hook);
    // A plain store is enough: the driver takes locks before it changes a device's memory, and a
    // thread that sees the change sees the store.
    if (shard.is_shared())
      shard.in_call_.fetch_add(1, std::memory_order_relaxed);
    else
      shard.in_call_.store(serial, std::memory_order_relaxed);
  }
  // Notes that the calling thread's hooked call has ended. A thread for which others_in_calls() is
  // false afterwards sees everything that was done in the call.
  void call_ends() noexcept {
    ThreadShard& shard = mine();
    if (shard.is_shared())
      shard.in_call_.fetch_sub(1, std::memory_order_release);
    else
      shard.in_call_.store(0, std::memory_order_release);
  }
  // Returns true if another thread is inside a hooked call with a serial number below `before`
  // (call_begins()). Also true if another thread without a shard of its own is inside any call.
  // The calling thread must be inside a hooked call itself, or have a shard of its own.
  bool others_in_calls(std::uint64_t before = UINT64_MAX) noexcept {
    const ThreadShard& own = mine();
    const std::uint64_t own_share = own.is_shared() ? 1 : 0;
    if (thread_shards()[0].in_call_.load(std::memory_order_acquire) > own_share) return true;
    const std::uint32_t used = used_.load(std::memory_order_seq_cst);
    for (std::uint32_t i = 1; i < used; ++i) {
      const std::uint64_t serial = thread_shards()[i].in_call_.load(std::memory_order_acquire);
      if (i != own.number_ && serial != 0 && serial < before) return true;
    }
    return false;
  }

  // Returns the number of shards that threads have had so far, including the shared one (shard 0).
  std::uint32_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  // Returns true if at least two threads have had shards of their own so far.
  bool several() const noexcept { return used() > 2; }
  // Calls visit(shard) for each shard (ThreadShard) that a thread has had, except the shared one.
  template <class Visit>
  void for_each(Visit visit) noexcept {
    const std::uint32_t used = used_.load(std::memory_order_seq_cst);
    for (std::uint32_t i = 1; i < used; ++i) visit(thread_shards()[i]);
  }

  // Adds `amount` to the number of live allocations of a series. `shard`: the calling thread's
  // shard. `row`: row of `series` in the ledger's table of series. A negative amount is given in
  // two's complement.
  void add_live(ThreadShard& shard, Series& series, std::size_t row,
                std::uint64_t amount) noexcept {
    if (row < ThreadShard::series_limit && !shard.is_shared()) {
      shard.add(shard.live_[row], amount);
    } else {
      series.live_count.fetch_add(amount, std::memory_order_relaxed);
    }
  }
  // Returns the number of live allocations of a series (all memory of one kind on one device), over
  // the shards of all threads. `row`: row of the series in the ledger's table of series.
  std::uint64_t live_count(const Series&, std::size_t row) const noexcept;

 private:
  // A thread's shard, and its row in the threads table, for one ThreadShards object. If the process
  // has several such objects, it is the one that the thread used last.
  struct Mine {
    ThreadShard* shard;  // the thread's shard; not valid if `serial` is another object's
    // Serial number of the ThreadShards object, from 1; 0: none. Row as my_row() returns it.
    std::uint32_t serial, row;
  };
  // Returns the array of all `count` shards.
  ThreadShard* thread_shards() const noexcept { return static_cast<ThreadShard*>(memory_.data()); }
  // Finds a shard for the calling thread, remembers it in mine_, and returns it. It is a shard that
  // no thread has had, or that of an ended thread. If there is none, it is shard 0. Returns shard
  // 0, too, if the thread may have no shard of its own (see mine()).
  ThreadShard& take() noexcept;
  // Counts a call of a hook in the calling thread's `shard`, or in the hook's row if the shard has
  // no counter for it.
  void count_call(const ThreadShard& shard, HookId hook) noexcept {
    if (hook.value < shard.hooks_) {
      shard.add(shard.calls_[hook.value], 1);
    } else {
      count_for_all(hook);
    }
  }
  // Counts a call of the hook in Hook::calls, for a thread whose shard has no counter for it.
  void count_for_all(HookId) noexcept;
  // Finds or makes the GroupShard row of this shard and group, and returns its counters. If there
  // is no room, returns the counters in the group's own row, and the ledger gets
  // reason_ledger_full.
  Counters& find_group_shard(ThreadShard&, Group&, GroupId) noexcept;

  // The calling thread's shard and row in the threads table.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Mine mine_;

  Storage& storage_;                    // the memory of the ledger, with its tables
  Mapping memory_;                      // array of `count` ThreadShards
  std::uint32_t serial_ = 0;            // number, from 1, that no other such object has
  std::uint32_t pid_ = 0;               // pid of the recorded process
  std::atomic<std::uint32_t> used_{1};  // shards that threads have had, including shard 0
};

}  // namespace cuwarden::ledger
