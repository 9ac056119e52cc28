// Reads the total and free memory of the current context's device, in a way that ends no stream
// capture.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::driver {

// Sets the calling thread's stream capture mode to RELAXED for the length of a scope. So the thread
// may call functions that a capture in global or thread-local mode forbids. Outside such a scope,
// the driver refuses them and ends the capture (measured for cuMemPoolGetAttribute; driver 580
// allows cuMemGetInfo, cuFuncGetAttribute and cuPointerGetAttribute). Costs 14 ns.
class RelaxedCaptures {
 public:
  // Sets the calling thread's stream capture mode to RELAXED. `real`: the driver's own functions.
  explicit RelaxedCaptures(const RealDriver& real) noexcept : real_(real) {
    relaxed_ = real.cuThreadExchangeStreamCaptureMode != nullptr &&
               real.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
  }
  ~RelaxedCaptures() {
    if (relaxed_) real_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  RelaxedCaptures(const RelaxedCaptures&) = delete;
  RelaxedCaptures& operator=(const RelaxedCaptures&) = delete;
  // True if the thread's stream capture mode was set to RELAXED. If false, the thread must not call
  // functions that would end a capture.
  explicit operator bool() const noexcept { return relaxed_; }
  // Returns the stream capture mode that the thread had before this object. Has a meaning only if
  // the object converts to true.
  CUstreamCaptureMode own_mode() const noexcept { return mode_; }

 private:
  const RealDriver& real_;  // the driver's own functions
  // Result of own_mode(): the capture mode that the thread had before this object. The destructor
  // sets it again. Means nothing if relaxed_ is false.
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  // True if the constructor has set the thread's stream capture mode to RELAXED.
  bool relaxed_ = false;
};

// Size of a device's memory, and the part that no process uses, in bytes.
struct DeviceReading {
  // total_bytes: size of the device's memory. free_bytes: part of it that no process uses.
  std::uint64_t total_bytes = 0, free_bytes = 0;
};
// Asks the driver for the total and free bytes of the current context's device, without ending a
// stream capture. Returns none if the driver lacks a function or gives an error, for example
// because no context is current.
inline std::optional<DeviceReading> read_current_device(const RealDriver& real) noexcept {
  const RelaxedCaptures relaxed(real);
  std::size_t free = 0, total = 0;
  if (!relaxed || real.cuMemGetInfo_v2 == nullptr ||
      real.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS)
    return std::nullopt;
  return DeviceReading{total, free};
}

}  // namespace cuwarden::driver
