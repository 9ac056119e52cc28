#include "runtime_hooks/ledger/live_bytes.hpp"

#include <algorithm>

namespace cuwarden::ledger {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto in_one_order = std::memory_order_seq_cst;

// Of one lane.
std::uint64_t largest_credit(std::uint64_t peak_bytes) {
  return std::max<std::uint64_t>(16 << 10, peak_bytes / 4096);
}

// A period without credits lasts at least so long: it is begun at the cost of a look at every lane.
constexpr std::uint64_t shortest_without_ns = 1'000'000;

}  // namespace

LiveBytes::Change LiveBytes::rise(Lane& lane, Series& series, std::size_t row, std::uint64_t bytes,
                                  std::uint64_t now_ns) noexcept {
  std::atomic<std::uint64_t>& live = series.live_bytes;
  if (row >= Lane::series_limit || !lanes_.several()) return {true, live.fetch_add(bytes, relaxed)};
  if (bytes > 0 && lane.spend(row, bytes)) return {};

  Period& period = periods_[row];
  for (;;) {
    std::uint32_t number = period.number.load(in_one_order);
    const std::uint64_t peak = series.peak_bytes.load(relaxed);
    if (keeps_credits(number)) {
      std::uint64_t seen = live.load(relaxed);
      while (seen + bytes <= peak) {
        if (live.compare_exchange_weak(seen, seen + bytes, in_one_order)) return {true, seen};
      }
      if (!period.number.compare_exchange_strong(number, number + 1, in_one_order)) continue;
      period.since_ns.store(now_ns, relaxed);
      collect(series, row);
      period.collected.store(++number, std::memory_order_release);
    } else {
      wait_for_collector(period, number);
    }
    const std::uint64_t before = live.fetch_add(bytes, in_one_order);
    // Credits may be in a new peak only where this period was over before.
    if (before + bytes <= peak || period.number.load(in_one_order) == number) return {true, before};
    live.fetch_sub(bytes, in_one_order);
  }
}

LiveBytes::Change LiveBytes::fall(Lane& lane, Series& series, std::size_t row, std::uint64_t bytes,
                                  std::uint64_t now_ns) noexcept {
  std::atomic<std::uint64_t>& live = series.live_bytes;
  if (!may_keep_credits(lane, row)) return {true, live.fetch_sub(bytes, relaxed)};
  Period& period = periods_[row];
  const std::uint64_t peak = series.peak_bytes.load(relaxed);
  if (keeps_credits(period.number.load(in_one_order)) &&
      lane.keep(row, bytes, largest_credit(peak))) {
    if (keeps_credits(period.number.load(in_one_order))) return {};
    // Whoever began the other period may have collected it.
    if (!lane.spend(row, bytes)) return {};
  }
  const std::uint64_t before = live.fetch_sub(bytes, in_one_order);
  std::uint32_t number = period.number.load(relaxed);
  if (!keeps_credits(number) && before - bytes < peak - peak / 8 &&
      now_ns > period.since_ns.load(relaxed) + shortest_without_ns) {
    period.number.compare_exchange_strong(number, number + 1, in_one_order);
  }
  return {true, before};
}

void LiveBytes::collect(Series& series, std::size_t row) noexcept {
  lanes_.for_each([&](Lane& lane) {
    if (const std::uint64_t credit = lane.take_credit(row))
      series.live_bytes.fetch_sub(credit, in_one_order);
  });
}

// A collector that was stopped in the act is waited for no longer than this; what it has in its
// hands may then be counted in a peak.
void LiveBytes::wait_for_collector(Period& period, std::uint32_t number) noexcept {
  std::uint32_t collected = period.collected.load(std::memory_order_acquire);
  for (int turn = 0; turn < 1000; ++turn) {
    // A later period's collector has come, and with it the end of this one.
    if (static_cast<std::int32_t>(collected - number) >= 0) return;
    __builtin_ia32_pause();
    collected = period.collected.load(std::memory_order_acquire);
  }
  period.collected.compare_exchange_strong(collected, number, relaxed);
}

}  // namespace cuwarden::ledger
