// Counters of each group, and for each series (all memory of one kind on one device) the live
// bytes, their peak and their timeline. Each thread counts in its shard. Two things are changed
// under locks that are tried but never waited for: the timeline's buckets (equal spans of time),
// and the groups' values at the peak.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/storage/live_bytes.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"
#include "runtime_hooks/ledger/write/allocation_records/timeline.hpp"
#include "runtime_hooks/ledger/write/allocation_records/tried_lock.hpp"

namespace cuwarden::ledger {

// Counts allocations and frees in the ledger's groups and series (all memory of one kind on one
// device). All threads may call the functions at any time after create().
class Totals {
 public:
  // The arguments are parts of one ledger's writer, which the object uses and does not own. They
  // must outlive it.
  Totals(Storage& storage, ThreadShards& thread_shards) noexcept
      : storage_(storage), thread_shards_(thread_shards), live_bytes_(thread_shards) {}
  // Maps memory for the data about each series (all memory of one kind on one device) that this
  // process keeps outside the ledger. Must be called before other functions. Returns false if there
  // is no memory.
  bool create() noexcept;

  // Counts an allocation of `bytes` in its group and the group's series (all memory of one kind on
  // one device). `now_ns`: time since process start. Must be called before the allocation's record
  // is added: otherwise another thread could count the free first.
  void allocated(GroupId, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  // Undoes a call of allocated(), because the allocation's record could not be added. The arguments
  // equal those of that call.
  void undo_allocated(GroupId, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  // Counts the free of an allocation of `bytes` in its group and the group's series (all memory of
  // one kind on one device). `now_ns`: time since process start. `life_ns`: time since the
  // allocation was made; 0: unknown.
  void freed(GroupId, std::uint64_t bytes, std::uint64_t now_ns, std::uint64_t life_ns) noexcept;
  // Undoes a call of freed(), because the driver refused the free. The group and `bytes` equal
  // those of that call. `now_ns`: present time since process start.
  void undo_freed(GroupId, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  // Counts the end of an allocation of `bytes` that ended with its context. The group counts it as
  // released, not as freed. `now_ns`: time since process start.
  void released(GroupId, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  // Adds `bytes` to the counted size of a live allocation, whose size was not fully known when it
  // was counted. The size of an imported handle, say, is known only when the handle is mapped.
  // `now_ns`: time since process start.
  void learned_size(GroupId, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  // Adds `bytes` to both the allocated and the freed bytes of the group, for allocations whose
  // sizes became known only after they were freed.
  void learned_ended_size(GroupId, std::uint64_t bytes) noexcept;

  // Returns the process's live bytes on the device (no_device: the host). `only`: the kind that
  // counts; null: all kinds for which is_in_device_account() is true. Threads count frees late, so
  // each kind may be too high by 1 MiB or 1/64 of its peak, whichever is more.
  std::uint64_t live_bytes_on(DeviceOrdinal,
                              std::optional<Kind> only = std::nullopt) const noexcept;

  // Returns the bytes of the device that the process's live allocations take, of all kinds for
  // which is_taken_at_once() is true. Includes bytes that are locked in the driver's slabs or lost
  // to rounding. Exact but for locked bytes, unless other threads allocate or free during the call.
  std::uint64_t taken_on(DeviceOrdinal) const noexcept;

  // Returns the number of the process's live allocations of this kind on the device (no_device: the
  // host).
  std::uint64_t live_count_on(DeviceOrdinal, Kind) const noexcept;

  // Adds a sample of the process's resident memory, in bytes, to its timeline and its peak.
  // `now_ns`: time of the sample since process start.
  void sample_host_rss(std::uint64_t bytes, std::uint64_t now_ns) noexcept;

  // Adds a new group to its series: all memory of one kind on one device. Makes the series if it
  // does not exist. If there is no room for the series, the group has none (reason_ledger_full).
  // The caller holds the lock of the groups table.
  void adopt(GroupId) noexcept;

  // Returns the series (all memory of one kind on one device) of `kind` and `device`. `kind`: a
  // Kind as a number, or series_host_rss. `device`: CUDA ordinal; -1: the host. Null if the series
  // was not made, because no group has this kind and device or there was no room.
  Series* series_of(std::uint8_t kind, std::int32_t device) noexcept;

 private:
  // Data of a series (all memory of one kind on one device) that only the writer needs. They are
  // not in the ledger's file.
  struct alignas(64) Side {
    Timeline timeline;  // writes the series' timeline
    // Held while the groups' live values are copied as those at the series' peak.
    TriedLock peak_lock;
  };

  // Returns the series (all memory of one kind on one device) of `kind` and `device`, and makes it
  // if needed. `kind`: a Kind as a number, or series_host_rss. `device`: CUDA ordinal; -1: the
  // host. Null if there is no room (reason_ledger_full) or the lock cannot be had.
  Series* make_series(std::uint8_t kind, std::int32_t device) noexcept;
  // Returns the series (all memory of one kind on one device) of the group; null if it has none.
  Series* series_of(const Group& group) noexcept {
    return group.series == 0 ? nullptr : storage_.rows<Series>(RegionId::series) + group.series;
  }
  // Returns the data of the series (all memory of one kind on one device) that are kept in this
  // process only, not in the ledger's file.
  Side& side_of(const Series& series) noexcept {
    return static_cast<Side*>(sides_.data())[&series - storage_.rows<Series>(RegionId::series)];
  }
  // Returns the group's row in the ledger. `id` must not be 0.
  Group& row(GroupId id) noexcept { return storage_.rows<Group>(RegionId::groups)[id.value]; }
  // Adds `count` live allocations of together `bytes` to the group's series (all memory of one kind
  // on one device), and to the series' peak and timeline. `ThreadShard`: the calling thread's own
  // counters. `now_ns`: time since process start.
  void raise(ThreadShard&, const Group&, std::uint64_t count, std::uint64_t bytes,
             std::uint64_t now_ns) noexcept;
  // Subtracts one live allocation of `bytes` from the group's series (all memory of one kind on one
  // device). `ThreadShard`: the calling thread's own counters. `now_ns`: time since process start.
  void lower(ThreadShard&, const Group&, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  // Stores the present live number and bytes of each group of the series (all memory of one kind on
  // one device) as those at the series' peak. Does nothing if another thread is storing them.
  // `now_ns`: time since process start.
  void copy_peak(Series&, std::uint64_t now_ns) noexcept;

  // Number of devices (ordinals -1 to 62) whose series are found by direct_. The series of other
  // devices are searched for.
  static constexpr std::size_t direct_devices = 64;

  Storage& storage_;             // the memory of the ledger, with its tables
  ThreadShards& thread_shards_;  // each thread's own counters
  LiveBytes live_bytes_;         // adds to Series::live_bytes, and subtracts from it
  Mapping sides_;                // array of Side, by row of the series table
  FutexLock make_lock_;          // held while a row of the series table is made
  // Row of the series of each kind on each device; 0: none. The index of a device is ordinal + 1.
  std::atomic<std::uint32_t> direct_[kind_count][direct_devices] = {};
  std::atomic<std::uint32_t> rss_series_{0};  // row of the series of resident memory; 0: none
};

}  // namespace cuwarden::ledger
