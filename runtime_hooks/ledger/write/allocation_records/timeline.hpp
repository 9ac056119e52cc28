// Writes the timeline of the live bytes of a series: all memory of one kind on one device.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/series_layout.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/tried_lock.hpp"

namespace cuwarden::ledger {

// Width of a new timeline's buckets in ns: Series::width_ns of a new series.
inline constexpr std::uint64_t first_width_ns = 1'000'000;

// Writes the timeline of one series (all memory of one kind on one device), and holds the data for
// it that are not in the ledger's file. All bytes of a new object are 0.
class Timeline {
 public:
  // Adds a change of the live bytes, from `before` to `after`, to the timeline of the series (all
  // memory of one kind on one device). `now_ns`: time of the change since process start.
  // `GrowingFile`: the ledger, which gets reason_recording_stopped if a thread has left the
  // timeline locked. `Series`: the one series that the object is for.
  void mark(GrowingFile&, Series&, std::uint64_t now_ns, std::uint64_t before,
            std::uint64_t after) noexcept;

 private:
  TriedLock lock_;  // held while the series' timeline is changed
  // Highest live bytes that the timeline lacks, because the thread that counted them found the
  // timeline locked; 0: none.
  std::atomic<std::uint64_t> missed_max_{0};
  // End (in ns since process start) and highest live bytes of the newest bucket (span of time) of
  // the series' timeline; 0 while the timeline is empty.
  std::atomic<std::uint64_t> newest_end_ns_{0}, newest_max_{0};
};

}  // namespace cuwarden::ledger
