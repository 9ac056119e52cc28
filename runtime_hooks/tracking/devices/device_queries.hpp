// Questions to the driver about contexts, streams, pointers and devices, asked on behalf of the
// calling thread. Every function leaves errno as it was, except where its comment says otherwise.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/tracking/devices/current_context.hpp"
#include "runtime_hooks/tracking/devices/live_contexts.hpp"

namespace cuwarden::tracking {

// Asks the driver about contexts, streams, pointers and devices, on behalf of the calling thread.
// Every function leaves errno as it was, except where its comment says otherwise.
class DeviceQueries {
 public:
  // `real` (the driver's functions) and `contexts` outlive the object.
  DeviceQueries(const driver::RealDriver& real, const LiveContexts& contexts) noexcept
      : real_(real), contexts_(contexts) {}

  // Returns the calling thread's current context and its device, from the driver.
  CurrentContext current() const noexcept;
  // Returns the calling thread's current context and its device, from the driver. May change errno.
  CurrentContext current_unguarded() const noexcept;
  // Returns the calling thread's current context and its device. Must be called only after the
  // driver has served a request in the current context: the function may skip the check that the
  // context has not ended. If the process sees a single device, the function saves time by not
  // asking the driver for the context's device. May change errno.
  CurrentContext current_that_served() noexcept;
  // Returns the context that the stream belongs to. For a default stream, or if the driver does not
  // say, returns the calling thread's current context; 0 if there is none.
  ContextId context_of(CUstream) const noexcept;
  // Returns the device on which the memory of a device pointer lies, whatever context is current;
  // no_device if the driver does not know the pointer.
  DeviceOrdinal device_of(CUdeviceptr) const noexcept;
  // Returns device 0 if the process sees a single device; no_device if there are several or the
  // driver does not say.
  DeviceOrdinal only_device() noexcept {
    const int count = device_count_.load(std::memory_order_relaxed);
    return (count != 0 ? count : ask_device_count()) == 1 ? DeviceOrdinal{0} : no_device;
  }
  // Returns the device's total memory in bytes, free or not; 0 if the driver does not say, or for
  // no_device. Needs no context.
  std::uint64_t total_bytes_of(DeviceOrdinal) const noexcept;
  // Returns the device's CUcomputemode; CU_COMPUTEMODE_DEFAULT if the driver does not say, or for
  // no_device.
  int compute_mode_of(DeviceOrdinal) const noexcept;
  // True if the device shares its memory with the host (CU_DEVICE_ATTRIBUTE_INTEGRATED); false if
  // the driver does not say, or for no_device.
  bool is_integrated(DeviceOrdinal) const noexcept;
  // True if the device's primary context exists, or if the driver does not say.
  bool primary_is_active(DeviceOrdinal) const noexcept;
  // Returns a context on this device that has not ended: the primary one if it is recorded and
  // exists, otherwise one that the program created. Returns 0 if none is known.
  ContextId live_context_on(DeviceOrdinal) const noexcept;

 private:
  // Returns the device's attribute; `otherwise` if the driver does not say, or for no_device.
  int attribute_of(DeviceOrdinal, CUdevice_attribute, int otherwise) const noexcept;
  // Asks the driver for the number of devices that the process sees, and keeps it in
  // `device_count_`. Returns the number; 0 if the driver does not say.
  int ask_device_count() noexcept;

  const driver::RealDriver& real_;
  const LiveContexts& contexts_;
  // Number of devices that the process sees; 0 until the driver has said it.
  std::atomic<int> device_count_{0};
};

}  // namespace cuwarden::tracking
