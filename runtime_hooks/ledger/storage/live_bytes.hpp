// Counts the live bytes of each series (all memory of one kind on one device). The peak of a series
// is exact, though threads seldom change its counter.
//
// A credit is a number of freed bytes that a thread's shard keeps to itself, within bounds. The
// thread's next allocations use its credit up, and the series' counter does not change. So that
// counter is the live bytes plus all credits. As long as the counter does not rise above the peak,
// no peak is missed. If an allocation would raise it above the peak, the credits are collected
// first: subtracted from the counter. For a while, until much was freed, all threads then change
// the counter itself, which equals the live bytes. A free at the same moment may count before or
// after.
//
// A program with one thread keeps no credits, so its timeline is exact. With credits, the timeline
// is too high by their sum, which is at most 1 MiB or 1/64 of the peak.
//
// On an H200, a pair of cudaMallocAsync and cudaFreeAsync of 4 KiB took 48.6 us with credits and
// 52.1 us without, in each of eight threads (cudaMalloc and cudaFree: 85.2 and 86.3 us). These are
// medians of seven runs, which spread by 13 to 26 %. One thread alone took 1.55 and 1.54 us.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/storage/thread_shards.hpp"

namespace cuwarden::ledger {

// Adds allocated and freed bytes to the counters of live bytes (Series::live_bytes). All threads
// may call the functions at any time.
class LiveBytes {
 public:
  // `thread_shards`: the shards of the ledger's threads, which keep the credits; must outlive the
  // object.
  explicit LiveBytes(ThreadShards& thread_shards) noexcept : thread_shards_(thread_shards) {}

  // The effect that a call of rise() or fall() had on the counter Series::live_bytes.
  struct Change {
    // True: the shared counter of live bytes changed. False: only a credit changed (freed bytes
    // that a thread keeps to itself).
    bool seen = false;
    std::uint64_t before = 0;  // Series::live_bytes before the call; 0 if only a credit changed
  };
  // Counts `bytes` that the calling thread has allocated. `shard`: the thread's part of the
  // counters. `series`, `row`: the series (all memory of one kind on one device) and its row in the
  // table. `now_ns`: time since process start. Returns the effect on Series::live_bytes.
  Change rise(ThreadShard& shard, Series& series, std::size_t row, std::uint64_t bytes,
              std::uint64_t now_ns) noexcept {
    if (row >= ThreadShard::series_limit || !thread_shards_.several())
      return {true, series.live_bytes.fetch_add(bytes, std::memory_order_relaxed)};
    if (bytes > 0 && shard.spend(row, bytes)) return {};
    return rise_for_all(series, row, bytes, now_ns);
  }
  // Counts `bytes` that the calling thread has freed. `shard`: the thread's part of the counters.
  // `series`, `row`: the series (all memory of one kind on one device) and its row in the table.
  // `now_ns`: time since process start. Returns the effect on Series::live_bytes.
  Change fall(ThreadShard& shard, Series& series, std::size_t row, std::uint64_t bytes,
              std::uint64_t now_ns) noexcept {
    if (!may_keep_credits(shard, row))
      return {true, series.live_bytes.fetch_sub(bytes, std::memory_order_relaxed)};
    if (keep(shard, series, row, bytes)) return {};
    return fall_for_all(series, row, bytes, now_ns);
  }
  // Returns the sum of all shards' credits for the series in this row: freed bytes by which
  // Series::live_bytes is too high.
  std::uint64_t credits(std::size_t row) const noexcept;

 private:
  // The present epoch of a series (all memory of one kind on one device). In epochs with even
  // numbers, threads' shards keep credits (freed bytes that the series' counter does not know yet).
  // In those with odd numbers, all threads change the counter itself.
  struct alignas(64) Epoch {
    // Number of the series' present epoch, from 0. Odd: threads keep no credits.
    std::atomic<std::uint32_t> number{0};
    // Number of the last odd epoch in which all shards' credits (freed bytes that the series'
    // counter did not know) were subtracted from the counter, or in which a thread gave up waiting
    // for that; 0: there was none.
    std::atomic<std::uint32_t> collected{0};
    // Start of the series' last odd epoch, in ns since process start; 0: there was none.
    std::atomic<std::uint64_t> since_ns{0};
  };
  // True if shards keep credits (freed bytes that the series' counter does not know yet) in the
  // epoch of this number.
  static bool keeps_credits(std::uint32_t epoch) noexcept { return epoch % 2 == 0; }
  // Returns true if the shard may keep a credit (freed bytes that the series' counter does not know
  // yet) for the series in this row. Always false until a second thread has had a shard: a single
  // thread changes the counter without disturbing another. Also false for the shared shard, and for
  // rows from ThreadShard::series_limit on.
  bool may_keep_credits(const ThreadShard& shard, std::size_t row) const noexcept {
    return row < ThreadShard::series_limit && !shard.is_shared() && thread_shards_.several();
  }
  // Adds `bytes`, which the thread has freed, to the shard's credit for the series in this row:
  // freed bytes that the series' counter does not know yet. Returns false if the series' epoch is
  // odd or the credit would become too large: the caller then subtracts the bytes from the counter.
  bool keep(ThreadShard& shard, const Series& series, std::size_t row,
            std::uint64_t bytes) noexcept {
    const Epoch& epoch = epochs_[row];
    const std::uint64_t peak = series.peak_bytes.load(std::memory_order_relaxed);
    return keeps_credits(epoch.number.load(std::memory_order_seq_cst)) &&
           shard.keep(row, bytes, largest_credit(peak)) &&
           // An odd epoch may have begun meanwhile. If the credit cannot be taken back then, its
           // collector has already subtracted these bytes from the counter.
           (keeps_credits(epoch.number.load(std::memory_order_seq_cst)) ||
            !shard.spend(row, bytes));
  }
  // Returns the most freed bytes that one shard may keep to itself (its credit) for a series whose
  // live bytes were `peak_bytes` at most.
  static std::uint64_t largest_credit(std::uint64_t peak_bytes) noexcept {
    return std::max<std::uint64_t>(16 << 10, peak_bytes / 4096);
  }
  // Adds `bytes`, which were allocated, to the series' counter, which all threads share. Uses up no
  // credit (freed bytes that a thread keeps to itself). `row`: the series' row. `now_ns`: time
  // since process start. Returns the effect on the counter.
  Change rise_for_all(Series&, std::size_t row, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  // Subtracts `bytes`, which were freed, from the series' counter, which all threads share. Keeps
  // no credit (freed bytes that a thread keeps to itself). `row`: the series' row. `now_ns`: time
  // since process start. Returns the effect on the counter.
  Change fall_for_all(Series&, std::size_t row, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  // Takes all shards' credits for the series in this row: freed bytes that the shards kept to
  // themselves. Subtracts them from the series' counter.
  void collect(Series&, std::size_t row) noexcept;
  // Waits until the thread that began the odd epoch `epoch` has collected all credits (freed bytes
  // that threads keep to themselves). If that thread does not run, gives up after some
  // microseconds, and marks the epoch as collected.
  static void wait_for_collector(Epoch&, std::uint32_t epoch) noexcept;

  // The shards of all threads. Each keeps its credits: freed bytes that the series' counters do not
  // know yet.
  ThreadShards& thread_shards_;
  Epoch epochs_[ThreadShard::series_limit];  // the present epoch of each series, by its row
};

}  // namespace cuwarden::ledger
