// Progress of work that passes over the rows of a report, for a person who waits for its end.
#pragma once

#include <algorithm>
#include <cstddef>

#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// Callback about the progress of work on a report. `done`: number of parts of the work, such as
// rows of the report, that are done. `all`: number of all its parts.
using Told = FunctionRef<void(std::size_t done, std::size_t all)>;

// Callback that is called whenever one more row is done.
using RowDone = FunctionRef<void()>;

// Counts the rows that work has done, and tells the progress now and then. If the work passes
// several times over the rows, the rows that are told as done are the average of all passes. The
// object is a RowDone.
class RowProgress {
 public:
  // Tells that no row is done. `rows`: number of rows of one pass. `passes`: number of passes, from
  // 1. `told`: gets the progress in rows of one pass; the caller keeps its callable alive as long
  // as this object.
  RowProgress(std::size_t rows, std::size_t passes, Told told)
      : rows_(rows), passes_(passes), told_(told) {
    tell();
  }
  RowProgress(const RowProgress&) = delete;
  RowProgress& operator=(const RowProgress&) = delete;

  // Notes that one pass is over one more row.
  void operator()() {
    constexpr std::size_t pause = 1024;
    if (++done_ % pause == 0) tell();
  }
  // Notes that at least this many passes are over all rows. Passes that were not needed count, too.
  void reach(std::size_t passes) {
    done_ = std::max(done_, passes * rows_);
    tell();
  }

 private:
  void tell() const { told_(std::min(done_ / passes_, rows_), rows_); }

  std::size_t done_ = 0;  // rows over which each pass is, summed up
  std::size_t rows_;      // rows of one pass
  std::size_t passes_;    // number of passes
  Told told_;             // callback that gets the progress
};

}  // namespace cuwarden
