// Counts by group, and live bytes by series (a kind on a device) with their peak and timeline. Each
// thread counts in its shard. Buckets and the copy of the peak are changed under locks that are
// only tried, never waited for.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/storage/live_bytes.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"

namespace cuwarden::ledger {

class Totals {
 public:
  Totals(Storage& storage, ThreadShards& thread_shards) noexcept
      : storage_(storage), thread_shards_(thread_shards), live_bytes_(thread_shards) {}
  bool create() noexcept;

  // Counts a new allocation; to be called before readers can find its record, so that no free is
  // counted first. undo_allocated() takes it back.
  void allocated(GroupId, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void undo_allocated(GroupId, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void freed(GroupId, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void undo_freed(GroupId, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void released(GroupId, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  // Adds the bytes of a live allocation that was counted with 0 bytes, because its size was not
  // known then.
  void learned_size(GroupId, std::uint64_t bytes, std::uint64_t now_ns) noexcept;

  // Returns the live bytes on the device, or in host memory for no_device. Without `only`, all
  // kinds in the device's account are summed up; otherwise that kind alone. The sum may be a little
  // too high (live_bytes.hpp).
  std::uint64_t live_bytes_on(DeviceOrdinal,
                              std::optional<Kind> only = std::nullopt) const noexcept;

  // Adds the process's resident set, in bytes, to its timeline.
  void sample_host_rss(std::uint64_t bytes, std::uint64_t now_ns) noexcept;

  // Adds a new group to its series' list, and makes the series if needed. The caller holds the
  // groups' lock.
  void adopt(GroupId) noexcept;

  // Returns the series; null if no memory of this kind was ever allocated on the device.
  Series* series_of(std::uint8_t kind, std::int32_t device) noexcept;

 private:
  // A lock that is only ever tried. It remembers since when it is held.
  class TriedLock {
   public:
    bool try_lock(std::uint64_t now_ns) noexcept {
      if (!lock_.try_lock()) return false;
      held_since_ns_.store(now_ns, std::memory_order_relaxed);
      return true;
    }
    void unlock() noexcept {
      held_since_ns_.store(0, std::memory_order_relaxed);
      lock_.unlock();
    }
    // For one who could not take it: by its length this is no visit of some microseconds.
    bool was_left(std::uint64_t now_ns) const noexcept {
      constexpr std::uint64_t patience_ns = 10'000'000'000;
      const std::uint64_t since = held_since_ns_.load(std::memory_order_relaxed);
      return since != 0 && now_ns > since + patience_ns;
    }

   private:
    FutexLock lock_;
    std::atomic<std::uint64_t> held_since_ns_;  // 0: not held
  };
  void watch(const TriedLock&, std::uint64_t now_ns) noexcept;

  // The part of a series that readers do not need.
  struct alignas(64) Side {
    TriedLock timeline_lock, peak_lock;
    std::atomic<std::uint64_t> missed_max{0};  // highest value that found the timeline locked
    std::atomic<std::uint64_t> newest_end_ns{0}, newest_max{0};  // those of the newest bucket
  };

  Series* make_series(std::uint8_t kind, std::int32_t device) noexcept;
  Series* series_of(const Group& group) noexcept {
    return group.series == 0 ? nullptr : storage_.rows<Series>(RegionId::series) + group.series;
  }
  Side& side_of(const Series& series) noexcept {
    return static_cast<Side*>(sides_.data())[&series - storage_.rows<Series>(RegionId::series)];
  }
  Group& row(GroupId id) noexcept { return storage_.rows<Group>(RegionId::groups)[id.value]; }
  // The series of a group, with so many allocations and bytes more or less.
  void raise(ThreadShard&, const Group&, std::uint64_t count, std::uint64_t bytes,
             std::uint64_t now_ns) noexcept;
  void lower(ThreadShard&, const Group&, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void copy_peak(Series&, std::uint64_t now_ns) noexcept;
  void mark(Series&, std::uint64_t now_ns, std::uint64_t before, std::uint64_t after) noexcept;

  static constexpr std::size_t direct_devices = 64;  // -1 … 62; others are searched for

  Storage& storage_;
  ThreadShards& thread_shards_;
  LiveBytes live_bytes_;
  Mapping sides_;
  FutexLock make_lock_;
  std::atomic<std::uint32_t> direct_[kind_count][direct_devices] = {};
  std::atomic<std::uint32_t> rss_series_{0};
};

}  // namespace cuwarden::ledger
