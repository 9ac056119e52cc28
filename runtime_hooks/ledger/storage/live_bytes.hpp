// The live bytes of a series. Its peak is exact, though threads seldom change one and the same
// counter.
//
// What a lane frees it keeps as a credit, within bounds, and takes from it what it allocates next:
// the series' counter stays as it is. So that counter is never below what is live, and above it by
// the credits. As long as it does not rise above the peak, no peak is missed. Where an allocation
// would raise it further, credits are collected first, and for a while, until much was freed, all
// threads use the counter itself: then it is what is live. Frees that are under way meanwhile may
// count as before or after, as it is with any counter.
//
// A thread that is alone keeps no credit: its timeline is exact. With credits it is so but for
// their sum, 1 MiB or 1/64 of the peak.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/storage/lanes.hpp"

namespace cuwarden::ledger {

class LiveBytes {
 public:
  explicit LiveBytes(Lanes& lanes) noexcept : lanes_(lanes) {}

  struct Change {
    bool seen = false;         // by others: the series' counter changed
    std::uint64_t before = 0;  // its value
  };
  // `row`: of the series.
  Change rise(Lane& lane, Series& series, std::size_t row, std::uint64_t bytes,
              std::uint64_t now_ns) noexcept {
    if (row >= Lane::series_limit || !lanes_.several())
      return {true, series.live_bytes.fetch_add(bytes, std::memory_order_relaxed)};
    if (bytes > 0 && lane.spend(row, bytes)) return {};
    return rise_for_all(series, row, bytes, now_ns);
  }
  Change fall(Lane& lane, Series& series, std::size_t row, std::uint64_t bytes,
              std::uint64_t now_ns) noexcept {
    if (!may_keep_credits(lane, row))
      return {true, series.live_bytes.fetch_sub(bytes, std::memory_order_relaxed)};
    if (keep(lane, series, row, bytes)) return {};
    return fall_for_all(series, row, bytes, now_ns);
  }

 private:
  // Of a series. Credits are kept in even periods.
  struct alignas(64) Period {
    std::atomic<std::uint32_t> number{0};
    std::atomic<std::uint32_t> collected{0};  // the odd period for which credits were collected
    std::atomic<std::uint64_t> since_ns{0};   // when the odd period began
  };
  static bool keeps_credits(std::uint32_t period) noexcept { return period % 2 == 0; }
  bool may_keep_credits(const Lane& lane, std::size_t row) const noexcept {
    return row < Lane::series_limit && !lane.is_shared() && lanes_.several();
  }
  bool keep(Lane& lane, const Series& series, std::size_t row, std::uint64_t bytes) noexcept {
    const Period& period = periods_[row];
    const std::uint64_t peak = series.peak_bytes.load(std::memory_order_relaxed);
    return keeps_credits(period.number.load(std::memory_order_seq_cst)) &&
           lane.keep(row, bytes, largest_credit(peak)) &&
           // Else whoever began the other period may have collected it.
           (keeps_credits(period.number.load(std::memory_order_seq_cst)) ||
            !lane.spend(row, bytes));
  }
  // Of one lane.
  static std::uint64_t largest_credit(std::uint64_t peak_bytes) noexcept {
    return std::max<std::uint64_t>(16 << 10, peak_bytes / 4096);
  }
  Change rise_for_all(Series&, std::size_t row, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  Change fall_for_all(Series&, std::size_t row, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void collect(Series&, std::size_t row) noexcept;
  static void wait_for_collector(Period&, std::uint32_t period) noexcept;

  Lanes& lanes_;
  Period periods_[Lane::series_limit];
};

}  // namespace cuwarden::ledger
