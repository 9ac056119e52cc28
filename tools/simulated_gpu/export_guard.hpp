// What every exported function does before anything else.
#pragma once

#include <cstddef>
#include <string_view>

#include "tools/simulated_gpu/faults.hpp"
#include "tools/simulated_gpu/simulator.hpp"

namespace cuwarden::simulated_gpu {

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

// One row of the table behind cuGetProcAddress: `plain` is what `name` means from driver
// version `since` on, `per_thread` the same with the per-thread default stream.
struct LookupRow {
  const char* name;
  int since;
  void* plain;
  void* per_thread;
};
extern const LookupRow lookup_rows[];
extern const std::size_t lookup_row_count;

}  // namespace cuwarden::simulated_gpu
