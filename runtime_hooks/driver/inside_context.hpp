// Calls of the driver in a CUDA context that is not the calling thread's current one.
#pragma once

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::driver {

// Makes the context `wanted` the calling thread's current one for the length of a scope. `current`
// is the context that is current before the scope and again after it; 0: none. If `wanted` is
// `current`, the scope does nothing. Converts to false if `wanted` could not be made current.
class Inside {
 public:
  // Makes `wanted` current, unless it is `current`, the context that is current now (0: none).
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
  // True if the context that the constructor got as `wanted` is current now.
  explicit operator bool() const { return result_ == CUDA_SUCCESS; }
  // Returns CUDA_SUCCESS if the context that the constructor got as `wanted` is current now.
  // Otherwise returns the driver's error, or CUDA_ERROR_NOT_SUPPORTED if the driver lacks a
  // function.
  CUresult result() const { return result_; }

 private:
  const RealDriver& real_;  // the driver's own functions
  // Value of result(): CUDA_SUCCESS, or the error that kept the wanted context from being current.
  CUresult result_ = CUDA_SUCCESS;
  // True if the constructor has pushed the wanted context, so that the destructor must pop it.
  bool pushed_ = false;
};

// Calls work(), which returns a CUresult, with `context` as the thread's current context, and
// returns the result of work(). Then makes the thread's earlier context current again. If `context`
// cannot be made current, returns Inside::result() without the call: the driver's error, or
// CUDA_ERROR_NOT_SUPPORTED.
template <class Work>
CUresult in_context(const RealDriver& real, ContextId context, Work work) noexcept {
  CUcontext current = nullptr;
  if (real.cuCtxGetCurrent == nullptr || real.cuCtxGetCurrent(&current) != CUDA_SUCCESS)
    current = nullptr;
  const Inside inside(real, context, ContextId{reinterpret_cast<std::uint64_t>(current)});
  return inside ? work() : inside.result();
}

}  // namespace cuwarden::driver
