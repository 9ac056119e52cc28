// Checks that every exported function makes before anything else.
#pragma once

#include <cstddef>
#include <string_view>

#include "tools/simulated_gpu/device/faults.hpp"
#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

// Lives for the length of an exported call. If `refusal` is not CUDA_SUCCESS, the call returns it.
// `per_thread`: the call came by a _ptsz or _ptds name.
class ExportGuard {
 public:
  ExportGuard(CallSite& site, bool per_thread)
      : refusal(refuse(site)), outer_(thread_state().per_thread_default) {
    if (per_thread) thread_state().per_thread_default = true;
  }
  ~ExportGuard() { thread_state().per_thread_default = outer_; }
  ExportGuard(const ExportGuard&) = delete;
  ExportGuard& operator=(const ExportGuard&) = delete;

  const CUresult refusal;

 private:
  static CUresult refuse(CallSite& site);
  bool outer_;
};

// One row of the table behind cuGetProcAddress. `plain` is the function that `name` means from
// driver version `since` on; `per_thread` is its form with the per-thread default stream, null if
// there is none.
struct LookupRow {
  const char* name;
  int since;
  void* plain;
  void* per_thread;
};
extern const LookupRow lookup_rows[];
extern const std::size_t lookup_row_count;

}  // namespace cuwarden::simulated_gpu
