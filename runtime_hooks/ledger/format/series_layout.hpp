// The ledger's rows of totals: one for each kind of memory on each device, with its peak, its
// timeline and the moment at which the most bytes were locked in slabs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuwarden::ledger {

// A part of a series' timeline: a span of time that is Series::width_ns long.
struct Bucket {
  // Highest live bytes of the series in the bucket's span. 0: the live bytes did not change in the
  // span. The live bytes are then those at the end of the timeline's previous bucket; 0 bytes in
  // the first bucket.
  std::atomic<std::uint64_t> max_bytes;
  // Live bytes of the series at the end of the bucket's span. Not valid in the newest bucket, nor
  // if `max_bytes` is 0.
  std::atomic<std::uint64_t> last_bytes;
};
inline constexpr std::size_t bucket_count = 240;  // buckets in the timeline of each series

inline constexpr std::uint8_t series_host_rss = 255;  // value of Series::kind for the process's RSS
// The totals of one kind of memory on one device (or the process's RSS), their peak and timeline.
// When time runs past the timeline's last bucket, each two neighbouring buckets become one, and the
// buckets' width doubles.
struct Series {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::int32_t device;               // CUDA ordinal; -1 for host memory
  std::uint8_t kind;                 // Kind, or series_host_rss
  std::uint8_t reserved[3];
  std::atomic<std::uint32_t> first_group;   // row of the first of the series' groups; 0: none
  std::atomic<std::uint32_t> fold_version;  // odd while pairs of buckets are being merged
  // Number of entries of `buckets`, the timeline, that are in use; the last of these is the newest.
  std::atomic<std::uint32_t> buckets_used;
  // Part of the series' number of live allocations that is in no thread's shard (own counter):
  // allocations less frees, in two's complement when negative. The number itself is the sum of this
  // part and the parts in the shards (ThreadShards::live_count()).
  std::atomic<std::uint64_t> live_count;
  // Live bytes, plus freed bytes that threads have not subtracted yet: at most 1 MiB or 1/64 of
  // peak_bytes, whichever is more. (The groups' counters are exact.) For series_host_rss: the RSS.
  std::atomic<std::uint64_t> live_bytes;
  // Number and bytes of live allocations when `live_bytes` was highest. If the size of no
  // allocation was ever known, `peak_bytes` is 0, and `peak_count` is their highest number.
  std::atomic<std::uint64_t> peak_count, peak_bytes;
  std::atomic<std::uint64_t> peak_ns;  // time of the moment of `peak_bytes`, since process start
  // Sum of the at_peak_bytes of the series' groups. All of these are set anew when the peak rises
  // more than 1 % above this sum.
  std::atomic<std::uint64_t> copied_peak_bytes;
  // Nanoseconds of time that each bucket of the timeline spans; bucket 0 begins at process start.
  std::atomic<std::uint64_t> width_ns;
  Bucket buckets[bucket_count];  // the timeline of live bytes, from process start on
  // Number of worst moments so far: moments with more locked bytes than ever before. Locked bytes
  // are free, but in slabs of the driver that also have a live allocation. This field and all below
  // are for linear device memory (Kind::device) only.
  std::atomic<std::uint32_t> worst_version;
  // Bytes that are locked now: free, but in the driver's slabs that are partly live. Threads add
  // their changes in batches, so the number may be a little wrong, even negative (two's
  // complement).
  std::atomic<std::uint64_t> slab_locked_bytes;
  std::atomic<std::uint64_t> page_rounding_bytes;  // bytes lost now to rounding up to 2 MiB pages
  // Most bytes that were ever locked at one moment; 0: none were ever locked.
  std::atomic<std::uint64_t> worst_locked_bytes;
  // Bytes lost to rounding up to 2 MiB pages when the most bytes were locked; 0 also if none were.
  std::atomic<std::uint64_t> worst_page_rounding_bytes;
  // Time at which the most bytes were locked, in ns since process start; 0: none were ever locked.
  std::atomic<std::uint64_t> worst_ns;
  // 1: some slabs could not be counted, so the numbers of locked bytes are incomplete; 0: all were.
  std::atomic<std::uint32_t> slabs_not_counted;
  // Seqlock of the series' WorstHolder rows and of `holders_*`, `pieces_seen` and `read_*`: odd
  // while they change; 0: they were never set. They are set at some of the moments at which more
  // bytes are locked than ever before.
  std::atomic<std::uint32_t> holders_version;
  // Row of the series' first WorstHolder (a group with many locked bytes); 0: none.
  std::atomic<std::uint32_t> first_holder;
  // 1: when the WorstHolder rows were last filled, many live allocations contradicted the layout of
  // slabs that slab_layout.hpp assumes. Numbers of locked bytes may then be wrong.
  std::atomic<std::uint32_t> slabs_misfit;
  // Time, in ns since process start, at which the series' WorstHolder rows (groups that locked most
  // bytes in slabs) were last filled, and all bytes locked then; 0: never.
  std::atomic<std::uint64_t> holders_ns, holders_locked_bytes;
  // Number of live allocations that shared a slab page with others at `holders_ns`, when the
  // WorstHolder rows were last filled.
  std::atomic<std::uint64_t> pieces_seen;
  // Time, in ns since process start, of the last reading of the device's free memory before the
  // WorstHolder rows were last filled; 0: there was none.
  std::atomic<std::uint64_t> read_ns;
  // Free bytes of the device at `read_ns`, the last reading before the WorstHolder rows were
  // filled.
  std::atomic<std::uint64_t> read_free_bytes;
  // Unused bytes of memory pools (CUmemoryPool) at `read_ns`, the last reading before the
  // WorstHolder rows were filled; unknown_value: not known.
  std::atomic<std::uint64_t> read_memory_pool_idle_bytes;
};

// Returns the bytes that the pages of a series' live allocations have beside the allocations: bytes
// locked in slabs, and bytes lost to rounding up to pages. 0 for other memory than linear device
// memory.
inline std::uint64_t beside_live_bytes(const Series& series) noexcept {
  const auto locked =
      static_cast<std::int64_t>(series.slab_locked_bytes.load(std::memory_order_relaxed));
  return series.page_rounding_bytes.load(std::memory_order_relaxed) +
         static_cast<std::uint64_t>(std::max<std::int64_t>(locked, 0));
}

}  // namespace cuwarden::ledger
