// Live bytes and counts by group and by series (a kind on a device), with their peaks and the
// timeline. Counters are atomics; buckets and the copy of the peak are changed under try-locks that
// nobody waits for.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/storage.hpp"

namespace cuwarden::ledger {

class Totals {
 public:
  explicit Totals(Storage& storage) noexcept : storage_(storage) {}
  bool create() noexcept;

  // A new allocation. Called before its record can be found, so that no free comes first.
  void allocated(Group&, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void undo_allocated(Group&, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void freed(Group&, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void undo_freed(Group&, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void released(Group&, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void failed(Group&) noexcept;
  // A live allocation of 0 bytes turned out to have so many.
  void learned_size(Group&, std::uint64_t bytes, std::uint64_t now_ns) noexcept;

  void sample_host_rss(std::uint64_t bytes, std::uint64_t now_ns) noexcept;

  // Puts a new group on its series' list; the series is made if need be. Under the groups' lock.
  void adopt(GroupId) noexcept;

 private:
  // What readers do not need of a series.
  struct alignas(64) Side {
    FutexLock timeline_lock, peak_lock;
    std::atomic<std::uint64_t> missed_max{0};  // of those that found the timeline locked
    std::atomic<std::uint64_t> newest_end_ns{0}, newest_max{0};  // of the newest bucket
  };

  Series* series_of(std::uint8_t kind, std::int32_t device) noexcept;
  Series* make_series(std::uint8_t kind, std::int32_t device) noexcept;
  Series* series_of(const Group& group) noexcept {
    return series_of(static_cast<std::uint8_t>(group.kind), group.device);
  }
  Side& side_of(const Series& series) noexcept {
    return static_cast<Side*>(sides_.data())[&series - storage_.rows<Series>(RegionId::series)];
  }
  void raise(Series*, std::uint64_t count, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void lower(Series*, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void copy_peak(Series&) noexcept;
  void mark(Series&, std::uint64_t now_ns, std::uint64_t before, std::uint64_t after) noexcept;

  static constexpr std::size_t direct_devices = 64;  // -1 … 62; others are searched for

  Storage& storage_;
  Mapping sides_;
  FutexLock make_lock_;
  std::atomic<std::uint32_t> direct_[kind_count][direct_devices] = {};
  std::atomic<std::uint32_t> rss_series_{0};
};

}  // namespace cuwarden::ledger
