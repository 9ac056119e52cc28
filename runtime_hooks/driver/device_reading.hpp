// Reads how full the current context's device is, in a way that breaks no stream capture.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::driver {

// Lets the calling thread, for the length of a scope, call functions that a stream capture forbids
// to it. Without this, such a call is refused and ends the capture (measured for
// cuMemPoolGetAttribute; driver 580 allows cuMemGetInfo, cuFuncGetAttribute and
// cuPointerGetAttribute). Costs 14 ns.
class RelaxedCaptures {
 public:
  explicit RelaxedCaptures(const RealDriver& real) noexcept : real_(real) {
    relaxed_ = real.cuThreadExchangeStreamCaptureMode != nullptr &&
               real.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
  }
  ~RelaxedCaptures() {
    if (relaxed_) real_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  RelaxedCaptures(const RelaxedCaptures&) = delete;
  RelaxedCaptures& operator=(const RelaxedCaptures&) = delete;
  // False if the driver refused: then no such function may be called.
  explicit operator bool() const noexcept { return relaxed_; }

 private:
  const RealDriver& real_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // then the thread's own
  bool relaxed_ = false;
};

// Total and free bytes of a device.
struct DeviceReading {
  std::uint64_t total_bytes = 0, free_bytes = 0;
};
// Returns the memory of the current context's device; none if the driver does not tell.
inline std::optional<DeviceReading> read_current_device(const RealDriver& real) noexcept {
  const RelaxedCaptures relaxed(real);
  std::size_t free = 0, total = 0;
  if (!relaxed || real.cuMemGetInfo_v2 == nullptr ||
      real.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS)
    return std::nullopt;
  return DeviceReading{total, free};
}

}  // namespace cuwarden::driver
