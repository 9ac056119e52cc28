// The live bytes of a series. Its peak is exact, though threads seldom change one and the same
// counter.
//
// A thread's shard keeps freed bytes as a credit, within bounds, and its next allocations use the
// credit up; the series' counter does not change. So that counter is the live bytes plus all
// credits. As long as it does not rise above the peak, no peak is missed. If an allocation would
// raise it above the peak, the credits are collected first. For a while, until much was freed, all
// threads then use the counter itself, which equals the live bytes. A free at the same moment may
// count before or after.
//
// A program with one thread keeps no credits, so its timeline is exact. With credits, the timeline
// is too high by their sum, which is at most 1 MiB or 1/64 of the peak.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/storage/thread_shards.hpp"

namespace cuwarden::ledger {

class LiveBytes {
 public:
  explicit LiveBytes(ThreadShards& thread_shards) noexcept : thread_shards_(thread_shards) {}

  struct Change {
    bool seen = false;         // true if the series' counter was changed
    std::uint64_t before = 0;  // the counter's value before the change
  };
  // Count allocated and freed bytes. `row`: the series' row.
  Change rise(ThreadShard& shard, Series& series, std::size_t row, std::uint64_t bytes,
              std::uint64_t now_ns) noexcept {
    if (row >= ThreadShard::series_limit || !thread_shards_.several())
      return {true, series.live_bytes.fetch_add(bytes, std::memory_order_relaxed)};
    if (bytes > 0 && shard.spend(row, bytes)) return {};
    return rise_for_all(series, row, bytes, now_ns);
  }
  Change fall(ThreadShard& shard, Series& series, std::size_t row, std::uint64_t bytes,
              std::uint64_t now_ns) noexcept {
    if (!may_keep_credits(shard, row))
      return {true, series.live_bytes.fetch_sub(bytes, std::memory_order_relaxed)};
    if (keep(shard, series, row, bytes)) return {};
    return fall_for_all(series, row, bytes, now_ns);
  }

 private:
  // The time of a series is divided into epochs; credits are kept in those with even numbers.
  struct alignas(64) Epoch {
    std::atomic<std::uint32_t> number{0};
    std::atomic<std::uint32_t> collected{0};  // the odd epoch for which credits were collected
    std::atomic<std::uint64_t> since_ns{0};   // time at which the odd epoch began
  };
  static bool keeps_credits(std::uint32_t epoch) noexcept { return epoch % 2 == 0; }
  bool may_keep_credits(const ThreadShard& shard, std::size_t row) const noexcept {
    return row < ThreadShard::series_limit && !shard.is_shared() && thread_shards_.several();
  }
  bool keep(ThreadShard& shard, const Series& series, std::size_t row,
            std::uint64_t bytes) noexcept {
    const Epoch& epoch = epochs_[row];
    const std::uint64_t peak = series.peak_bytes.load(std::memory_order_relaxed);
    return keeps_credits(epoch.number.load(std::memory_order_seq_cst)) &&
           shard.keep(row, bytes, largest_credit(peak)) &&
           // If an odd epoch has begun meanwhile and the credit is gone, it was collected and
           // counts.
           (keeps_credits(epoch.number.load(std::memory_order_seq_cst)) ||
            !shard.spend(row, bytes));
  }
  // Returns the largest credit of one shard, in bytes.
  static std::uint64_t largest_credit(std::uint64_t peak_bytes) noexcept {
    return std::max<std::uint64_t>(16 << 10, peak_bytes / 4096);
  }
  Change rise_for_all(Series&, std::size_t row, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  Change fall_for_all(Series&, std::size_t row, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void collect(Series&, std::size_t row) noexcept;
  static void wait_for_collector(Epoch&, std::uint32_t epoch) noexcept;

  ThreadShards& thread_shards_;
  Epoch epochs_[ThreadShard::series_limit];
};

}  // namespace cuwarden::ledger
