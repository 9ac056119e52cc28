#include "runtime_hooks/ledger/storage/live_bytes.hpp"

#include "runtime_hooks/core/atomic_field.hpp"

namespace cuwarden::ledger {
namespace {

constexpr auto in_one_order = std::memory_order_seq_cst;

// Least length of an epoch without credits, since its beginning costs a look at every shard. The
// real length is rounded up to the next tick of the clock that times calls.
constexpr std::uint64_t shortest_without_ns = 1'000'000;

}  // namespace

LiveBytes::Change LiveBytes::rise_for_all(Series& series, std::size_t row, std::uint64_t bytes,
                                          std::uint64_t now_ns) noexcept {
  std::atomic<std::uint64_t>& live = series.live_bytes;
  Epoch& epoch = epochs_[row];
  for (;;) {
    std::uint32_t number = epoch.number.load(in_one_order);
    const std::uint64_t peak = series.peak_bytes.load(relaxed);
    if (keeps_credits(number)) {
      std::uint64_t seen = live.load(relaxed);
      while (seen + bytes <= peak) {
        if (live.compare_exchange_weak(seen, seen + bytes, in_one_order)) return {true, seen};
      }
      if (!epoch.number.compare_exchange_strong(number, number + 1, in_one_order)) continue;
      epoch.since_ns.store(now_ns, relaxed);
      collect(series, row);
      epoch.collected.store(++number, std::memory_order_release);
    } else {
      wait_for_collector(epoch, number);
    }
    const std::uint64_t before = live.fetch_add(bytes, in_one_order);
    // A new peak is right only if no new epoch has begun since: it would include credits of
    // that epoch.
    if (before + bytes <= peak || epoch.number.load(in_one_order) == number) return {true, before};
    live.fetch_sub(bytes, in_one_order);
  }
}

LiveBytes::Change LiveBytes::fall_for_all(Series& series, std::size_t row, std::uint64_t bytes,
                                          std::uint64_t now_ns) noexcept {
  Epoch& epoch = epochs_[row];
  const std::uint64_t peak = series.peak_bytes.load(relaxed);
  const std::uint64_t before = series.live_bytes.fetch_sub(bytes, in_one_order);
  std::uint32_t number = epoch.number.load(relaxed);
  if (!keeps_credits(number) && before - bytes < peak - peak / 8 &&
      now_ns > epoch.since_ns.load(relaxed) + shortest_without_ns) {
    epoch.number.compare_exchange_strong(number, number + 1, in_one_order);
  }
  return {true, before};
}

std::uint64_t LiveBytes::credits(std::size_t row) const noexcept {
  std::uint64_t sum = 0;
  if (row < ThreadShard::series_limit && thread_shards_.several())
    thread_shards_.for_each([&](const ThreadShard& shard) { sum += shard.credit(row); });
  return sum;
}

void LiveBytes::collect(Series& series, std::size_t row) noexcept {
  thread_shards_.for_each([&](ThreadShard& shard) {
    if (const std::uint64_t credit = shard.take_credit(row))
      series.live_bytes.fetch_sub(credit, in_one_order);
  });
}

// Waits for the thread that collects the epoch's credits, for a limited time. If that thread was
// stopped meanwhile, the credits that it holds may be counted in a peak.
void LiveBytes::wait_for_collector(Epoch& epoch, std::uint32_t number) noexcept {
  std::uint32_t collected = epoch.collected.load(std::memory_order_acquire);
  for (int turn = 0; turn < 1000; ++turn) {
    // The collector of a later epoch has come, so this epoch has ended, too.
    if (static_cast<std::int32_t>(collected - number) >= 0) return;
    __builtin_ia32_pause();
    collected = epoch.collected.load(std::memory_order_acquire);
  }
  epoch.collected.compare_exchange_strong(collected, number, relaxed);
}

}  // namespace cuwarden::ledger
