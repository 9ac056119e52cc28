// The calling thread in another context, for a scope.
#pragma once

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::driver {

// Where the thread is there already, nothing is done.
class Inside {
 public:
  Inside(const RealDriver& real, ContextId wanted, ContextId current) : real_(real) {
    if (wanted == current) return;
    result_ = CUDA_ERROR_NOT_SUPPORTED;
    if (real.cuCtxPushCurrent_v2 == nullptr || real.cuCtxPopCurrent_v2 == nullptr) return;
    result_ = real.cuCtxPushCurrent_v2(reinterpret_cast<CUcontext>(wanted.value));
    pushed_ = result_ == CUDA_SUCCESS;
  }
  ~Inside() {
    CUcontext popped = nullptr;
    if (pushed_) real_.cuCtxPopCurrent_v2(&popped);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  explicit operator bool() const { return result_ == CUDA_SUCCESS; }
  // Why the thread is not there.
  CUresult result() const { return result_; }

 private:
  const RealDriver& real_;
  CUresult result_ = CUDA_SUCCESS;
  bool pushed_ = false;
};

}  // namespace cuwarden::driver
