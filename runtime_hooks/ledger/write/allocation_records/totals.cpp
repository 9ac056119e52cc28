// The order of updates serves readers that take no lock: live values rise before a record is
// published, and fall after the record is gone.
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/format/group_counts.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"

namespace cuwarden::ledger {

bool Totals::create() noexcept {
  const RegionExtent& extent = storage_.geometry().regions[index_of(RegionId::series)];
  sides_ = Mapping::anonymous(extent.capacity_bytes / extent.row_bytes * sizeof(Side));
  return static_cast<bool>(sides_);
}

Series* Totals::series_of(std::uint8_t kind, std::int32_t device) noexcept {
  Series* const rows = storage_.rows<Series>(RegionId::series);
  if (kind < kind_count && device >= -1 && device + 1 < std::int32_t{direct_devices}) {
    const std::uint32_t row =
        direct_[kind][static_cast<std::size_t>(device + 1)].load(std::memory_order_acquire);
    return row == 0 ? nullptr : rows + row;
  }
  const std::uint64_t used = storage_.used(RegionId::series);
  for (std::uint64_t i = 1; i < used; ++i) {
    if (rows[i].state.load(std::memory_order_acquire) == 1 && rows[i].kind == kind &&
        rows[i].device == device) {
      return rows + i;
    }
  }
  return nullptr;
}

Series* Totals::make_series(std::uint8_t kind, std::int32_t device) noexcept {
  const LedgerLocked locked(make_lock_, storage_);
  if (!locked) return nullptr;
  if (Series* const there = series_of(kind, device)) return there;
  const std::uint64_t row = storage_.allocate(RegionId::series, 1);
  if (row == 0) {
    storage_.add_reason(reason_ledger_full);
    return nullptr;
  }
  Series& series = storage_.rows<Series>(RegionId::series)[row];
  series.kind = kind;
  series.device = device;
  series.width_ns.store(first_width_ns, relaxed);
  series.state.store(1, std::memory_order_release);
  if (kind < kind_count && device >= -1 && device + 1 < std::int32_t{direct_devices}) {
    direct_[kind][static_cast<std::size_t>(device + 1)].store(static_cast<std::uint32_t>(row),
                                                              std::memory_order_release);
  }
  return &series;
}

void Totals::adopt(GroupId id) noexcept {
  Group& group = storage_.rows<Group>(RegionId::groups)[id.value];
  Series* const series = make_series(static_cast<std::uint8_t>(group.kind), group.device);
  if (series == nullptr) return;
  store_field(group.series,
              static_cast<std::uint32_t>(series - storage_.rows<Series>(RegionId::series)));
  store_field(group.next_in_series, series->first_group.load(relaxed));
  series->first_group.store(id.value, std::memory_order_release);
}

void Totals::allocated(GroupId id, std::uint64_t bytes, std::uint64_t now_ns) noexcept {
  ThreadShard& shard = thread_shards_.mine();
  Group& group = row(id);
  Counters& counters = thread_shards_.counters_of(shard, group, id);
  if (counters.allocations.load(relaxed) == 0) {
    std::uint64_t none = 0;
    group.first_ns.compare_exchange_strong(none, std::max<std::uint64_t>(now_ns, 1), relaxed);
  }
  shard.add(counters.allocations, 1);
  shard.add(counters.allocated_bytes, bytes);
  counters.last_ns.store(now_ns, relaxed);
  raise(shard, group, 1, bytes, now_ns);
}

void Totals::undo_allocated(GroupId id, std::uint64_t bytes, std::uint64_t now_ns) noexcept {
  ThreadShard& shard = thread_shards_.mine();
  Counters& counters = thread_shards_.counters_of(shard, row(id), id);
  lower(shard, row(id), bytes, now_ns);
  shard.add(counters.allocated_bytes, -bytes);
  shard.add(counters.allocations, -std::uint64_t{1});
}

void Totals::freed(GroupId id, std::uint64_t bytes, std::uint64_t now_ns,
                   std::uint64_t life_ns) noexcept {
  ThreadShard& shard = thread_shards_.mine();
  Counters& counters = thread_shards_.counters_of(shard, row(id), id);
  lower(shard, row(id), bytes, now_ns);
  shard.add(counters.freed_bytes, bytes);
  shard.add(counters.frees, 1);
  if (life_ns == 0) return;
  // Threads that share a shard may lose one another's life, which the next free makes up for.
  LongestLife longest(counters.longest_life.load(relaxed));
  longest.freed(now_ns, life_ns);
  counters.longest_life.store(longest.word(), relaxed);
}

void Totals::undo_freed(GroupId id, std::uint64_t bytes, std::uint64_t now_ns) noexcept {
  ThreadShard& shard = thread_shards_.mine();
  Counters& counters = thread_shards_.counters_of(shard, row(id), id);
  shard.add(counters.frees, -std::uint64_t{1});
  shard.add(counters.freed_bytes, -bytes);
  raise(shard, row(id), 1, bytes, now_ns);
}

void Totals::released(GroupId id, std::uint64_t bytes, std::uint64_t now_ns) noexcept {
  Group& group = row(id);
  lower(thread_shards_.mine(), group, bytes, now_ns);
  group.released_bytes.fetch_add(bytes, relaxed);
  group.released_count.fetch_add(1, relaxed);
}

void Totals::learned_size(GroupId id, std::uint64_t bytes, std::uint64_t now_ns) noexcept {
  ThreadShard& shard = thread_shards_.mine();
  shard.add(thread_shards_.counters_of(shard, row(id), id).allocated_bytes, bytes);
  raise(shard, row(id), 0, bytes, now_ns);
}

void Totals::learned_ended_size(GroupId id, std::uint64_t bytes) noexcept {
  ThreadShard& shard = thread_shards_.mine();
  Counters& counters = thread_shards_.counters_of(shard, row(id), id);
  shard.add(counters.allocated_bytes, bytes);
  shard.add(counters.freed_bytes, bytes);
}

void Totals::raise(ThreadShard& shard, const Group& group, std::uint64_t added, std::uint64_t bytes,
                   std::uint64_t now_ns) noexcept {
  Series* const series = series_of(group);
  if (series == nullptr) return;
  thread_shards_.add_live(shard, *series, group.series, added);
  const LiveBytes::Change change = live_bytes_.rise(shard, *series, group.series, bytes, now_ns);
  if (!change.seen) return;
  const std::uint64_t after = change.before + bytes;
  std::uint64_t peak = series->peak_bytes.load(relaxed);
  while (peak < after && !series->peak_bytes.compare_exchange_weak(peak, after, relaxed)) {
  }
  // For allocations of unknown size (imported, not mapped yet), the peak is that of their number.
  if (peak == 0 && after == 0)
    raise_to(series->peak_count, thread_shards_.live_count(*series, group.series));
  if (peak < after) {
    series->peak_count.store(thread_shards_.live_count(*series, group.series), relaxed);
    series->peak_ns.store(now_ns, relaxed);
    const std::uint64_t copied = series->copied_peak_bytes.load(relaxed);
    if (after - copied > copied / 100) copy_peak(*series, now_ns);
  }
  side_of(*series).timeline.mark(storage_, *series, now_ns, change.before, after);
}

void Totals::lower(ThreadShard& shard, const Group& group, std::uint64_t bytes,
                   std::uint64_t now_ns) noexcept {
  Series* const series = series_of(group);
  if (series == nullptr) return;
  thread_shards_.add_live(shard, *series, group.series, -std::uint64_t{1});
  const LiveBytes::Change change = live_bytes_.fall(shard, *series, group.series, bytes, now_ns);
  if (!change.seen) return;
  side_of(*series).timeline.mark(storage_, *series, now_ns, change.before, change.before - bytes);
}

void Totals::copy_peak(Series& series, std::uint64_t now_ns) noexcept {
  TriedLock& lock = side_of(series).peak_lock;
  // The lock is taken, so another thread copies the same moment.
  if (!lock.try_lock(now_ns)) return watch(lock, storage_, now_ns);
  Group* const groups = storage_.rows<Group>(RegionId::groups);
  const GroupShard* const group_shards = storage_.rows<GroupShard>(RegionId::group_shards);
  const auto shard_at = [group_shards](std::uint32_t group_shard) {
    return group_shards + group_shard;
  };
  std::uint64_t total = 0;
  for (std::uint32_t i = series.first_group.load(std::memory_order_acquire); i != 0;
       i = groups[i].next_in_series) {
    const GroupCounts counts = counts_of(groups[i], i, shard_at);
    groups[i].at_peak_bytes.store(counts.live_bytes, relaxed);
    groups[i].at_peak_count.store(counts.live_count, relaxed);
    total += counts.live_bytes;
  }
  series.copied_peak_bytes.store(total, relaxed);
  lock.unlock();
}

void Totals::sample_host_rss(std::uint64_t bytes, std::uint64_t now_ns) noexcept {
  Series* const rows = storage_.rows<Series>(RegionId::series);
  std::uint32_t row = rss_series_.load(std::memory_order_acquire);
  if (row == 0) {
    Series* const made = make_series(series_host_rss, no_device.value);
    if (made == nullptr) return;
    row = static_cast<std::uint32_t>(made - rows);
    rss_series_.store(row, std::memory_order_release);
  }
  Series& series = rows[row];
  const std::uint64_t before = series.live_bytes.exchange(bytes, relaxed);
  std::uint64_t peak = series.peak_bytes.load(relaxed);
  while (peak < bytes && !series.peak_bytes.compare_exchange_weak(peak, bytes, relaxed)) {
  }
  if (peak < bytes) series.peak_ns.store(now_ns, relaxed);
  side_of(series).timeline.mark(storage_, series, now_ns, before, bytes);
}

std::uint64_t Totals::live_count_on(DeviceOrdinal ordinal, Kind kind) const noexcept {
  const Series* const rows = storage_.rows<Series>(RegionId::series);
  const std::uint64_t used = storage_.used(RegionId::series);
  for (std::uint64_t i = 1; i < used; ++i) {
    if (rows[i].state.load(std::memory_order_acquire) == 1 && rows[i].device == ordinal.value &&
        rows[i].kind == static_cast<std::uint8_t>(kind))
      return thread_shards_.live_count(rows[i], i);
  }
  return 0;
}

std::uint64_t Totals::live_bytes_on(DeviceOrdinal ordinal,
                                    std::optional<Kind> only) const noexcept {
  const Series* const rows = storage_.rows<Series>(RegionId::series);
  const std::uint64_t used = storage_.used(RegionId::series);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 1; i < used; ++i) {
    if (rows[i].state.load(std::memory_order_acquire) == 1 && rows[i].device == ordinal.value &&
        rows[i].kind != series_host_rss &&
        (only ? Kind{rows[i].kind} == *only : is_in_device_account(Kind{rows[i].kind})))
      sum += rows[i].live_bytes.load(relaxed);
  }
  return sum;
}

std::uint64_t Totals::taken_on(DeviceOrdinal ordinal) const noexcept {
  const Series* const rows = storage_.rows<Series>(RegionId::series);
  const std::uint64_t used = storage_.used(RegionId::series);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 1; i < used; ++i) {
    if (rows[i].state.load(std::memory_order_acquire) != 1 || rows[i].device != ordinal.value ||
        rows[i].kind == series_host_rss || !is_taken_at_once(Kind{rows[i].kind}))
      continue;
    const std::uint64_t live = rows[i].live_bytes.load(relaxed);
    sum += live - std::min(live, live_bytes_.credits(i)) + beside_live_bytes(rows[i]);
  }
  return sum;
}

}  // namespace cuwarden::ledger
