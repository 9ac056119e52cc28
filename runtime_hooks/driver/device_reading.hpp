// Reads how full the current context's device is, in a way that breaks no stream capture.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::driver {

// While it lives, the calling thread may ask what a capture forbids, its own or another thread's:
// such a question is refused and ends the capture (measured of cuMemPoolGetAttribute; cuMemGetInfo,
// cuFuncGetAttribute and cuPointerGetAttribute are let through by driver 580). 14 ns.
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
  // False: nothing may be asked.
  explicit operator bool() const noexcept { return relaxed_; }

 private:
  const RealDriver& real_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // then the thread's own
  bool relaxed_ = false;
};

struct DeviceReading {
  std::uint64_t total_bytes = 0, free_bytes = 0;
};
inline std::optional<DeviceReading> read_current_device(const RealDriver& real) noexcept {
  const RelaxedCaptures relaxed(real);
  std::size_t free = 0, total = 0;
  if (!relaxed || real.cuMemGetInfo_v2 == nullptr ||
      real.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS)
    return std::nullopt;
  return DeviceReading{total, free};
}

}  // namespace cuwarden::driver
