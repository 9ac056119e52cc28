// Checks that each exported function of the simulated driver makes first, and the table of
// functions for cuGetProcAddress.
#pragma once

#include <cstddef>

#include "tools/simulated_gpu/device/faults.hpp"
#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

// Each call of an exported function of the simulated driver makes one object at its start, and
// destroys it at its end. The constructor checks if the call may go on (`refusal`). If the
// function's name ends in _ptsz or _ptds, the default stream is the calling thread's own while the
// object exists.
class EntryGuard {
 public:
  // `site`: the function that the program has called. `per_thread`: true if its name ends in _ptsz
  // or _ptds, so that the default stream is the thread's own during the call.
  EntryGuard(CallSite& site, bool per_thread)
      : refusal(refuse(site)), outer_(thread_state().per_thread_default) {
    if (per_thread) thread_state().per_thread_default = true;
  }
  // Restores the default stream from before the call.
  ~EntryGuard() { thread_state().per_thread_default = outer_; }
  EntryGuard(const EntryGuard&) = delete;
  EntryGuard& operator=(const EntryGuard&) = delete;

  // CUDA_SUCCESS if the call may go on; otherwise the error that the call must return without doing
  // anything. Reasons: the process is ending, is a forked child, or has not called cuInit; or a
  // rule of CUWARDEN_SIM_FAIL makes the call fail.
  const CUresult refusal;

 private:
  // Returns the error that the call of the function must return without doing anything;
  // CUDA_SUCCESS if the call may go on.
  static CUresult refuse(CallSite& site);
  bool outer_;  // Value of ThreadState::per_thread_default before the call.
};

// One row of the table from which the simulated cuGetProcAddress answers: the function that it
// returns for a name from a certain CUDA version on.
struct LookupRow {
  const char* name;  // Name of a driver function without _vN, _ptsz or _ptds, such as cuMemAlloc.
  // CUDA version from which on the row holds, such as 3020 for 3.2. The next row with an equal name
  // holds from its own version on.
  int since;
  void* plain;  // Address of the row's function in the form with the legacy default stream.
  // Address of the row's function in the form with the thread's own default stream (_ptsz, _ptds);
  // null if it has no such form.
  void* per_thread;
};
// The table from which the simulated cuGetProcAddress answers; generated from CUDA's headers.
// Sorted by name; for each name, rows of older versions come first.
extern const LookupRow lookup_rows[];
extern const std::size_t lookup_row_count;  // Number of rows in lookup_rows.

}  // namespace cuwarden::simulated_gpu
