#include "runtime_hooks/ledger/write/allocation_records/timeline.hpp"

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"

namespace cuwarden::ledger {
namespace {

// Merges two neighbouring buckets; the right one is the later one. A bucket without a change has a
// maximum of 0, and adds nothing.
void fold_into(Bucket& into, const Bucket& left, const Bucket& right) {
  const std::uint64_t left_max = left.max_bytes.load(relaxed);
  const std::uint64_t right_max = right.max_bytes.load(relaxed);
  const std::uint64_t last =
      right_max != 0 ? right.last_bytes.load(relaxed) : left.last_bytes.load(relaxed);
  into.max_bytes.store(std::max(left_max, right_max), relaxed);
  into.last_bytes.store(last, relaxed);
}

void fold(Series& series) {
  series.fold_version.fetch_add(1, std::memory_order_acq_rel);
  for (std::size_t i = 0; i < bucket_count / 2; ++i) {
    fold_into(series.buckets[i], series.buckets[2 * i], series.buckets[2 * i + 1]);
  }
  for (std::size_t i = bucket_count / 2; i < bucket_count; ++i) {
    series.buckets[i].max_bytes.store(0, relaxed);
    series.buckets[i].last_bytes.store(0, relaxed);
  }
  series.buckets_used.store((series.buckets_used.load(relaxed) + 1) / 2, relaxed);
  series.width_ns.store(series.width_ns.load(relaxed) * 2, relaxed);
  series.fold_version.fetch_add(1, std::memory_order_release);
}

}  // namespace

void Timeline::mark(GrowingFile& ledger, Series& series, std::uint64_t now_ns, std::uint64_t before,
                    std::uint64_t after) noexcept {
  std::uint64_t highest = std::max(before, after);
  // Most changes lie within the timeline's newest bucket and below its maximum.
  if (now_ns < newest_end_ns_.load(relaxed) && highest <= newest_max_.load(relaxed) &&
      missed_max_.load(relaxed) == 0) {
    return;
  }
  if (!lock_.try_lock(now_ns)) {
    raise_to(missed_max_, highest);
    return watch(lock_, ledger, now_ns);
  }
  if (missed_max_.load(relaxed) != 0) {
    highest = std::max(highest, missed_max_.exchange(0, relaxed));
  }
  std::uint64_t at = now_ns / series.width_ns.load(relaxed);
  const std::uint32_t newest = series.buckets_used.load(relaxed);
  if (newest != 0 && at >= newest) series.buckets[newest - 1].last_bytes.store(before, relaxed);
  while (at >= bucket_count) {
    fold(series);
    at = now_ns / series.width_ns.load(relaxed);
  }
  // A thread that read the clock earlier than another one writes into the newest bucket, not into
  // the past.
  const std::uint32_t used = series.buckets_used.load(relaxed);
  if (at + 1 < used) at = used - 1;
  Bucket& bucket = series.buckets[at];
  raise_to(bucket.max_bytes, highest);
  if (at >= used) {
    series.buckets_used.store(static_cast<std::uint32_t>(at + 1), std::memory_order_release);
  }
  newest_max_.store(bucket.max_bytes.load(relaxed), relaxed);
  newest_end_ns_.store((at + 1) * series.width_ns.load(relaxed), relaxed);
  lock_.unlock();
}

}  // namespace cuwarden::ledger
