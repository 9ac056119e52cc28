// Questions to the driver about contexts, streams, pointers and devices, asked on behalf of the
// calling thread. Every function leaves errno as it was, except where its comment says otherwise.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/tracking/current_context.hpp"
#include "runtime_hooks/tracking/live_contexts.hpp"

namespace cuwarden::tracking {

class DeviceQueries {
 public:
  DeviceQueries(const driver::RealDriver& real, const LiveContexts& contexts) noexcept
      : real_(real), contexts_(contexts) {}

  CurrentContext current() const noexcept;
  // Answers as current() does. The caller keeps errno itself.
  CurrentContext current_unguarded() const noexcept;
  // Answers as current_unguarded() does, with one question fewer where the process sees a single
  // device. To be called after a request was served: a context that has ended is not recognised.
  CurrentContext current_that_served() noexcept;
  // Returns the stream's context; of a default stream, the current context.
  ContextId context_of(CUstream) const noexcept;
  // Returns the device that a device pointer lies on, whatever context is current; no_device where
  // the driver does not know the pointer.
  DeviceOrdinal device_of(CUdeviceptr) const noexcept;
  // Returns the device of a process that sees a single one; no_device where there are several.
  DeviceOrdinal only_device() noexcept {
    const int count = device_count_.load(std::memory_order_relaxed);
    return (count != 0 ? count : ask_device_count()) == 1 ? DeviceOrdinal{0} : no_device;
  }
  // Returns the device's size in bytes; 0 where the driver does not say. Needs no context.
  std::uint64_t total_bytes_of(DeviceOrdinal) const noexcept;
  // Returns a CUcomputemode; CU_COMPUTEMODE_DEFAULT where the driver does not say.
  int compute_mode_of(DeviceOrdinal) const noexcept;
  // Returns true also where the driver does not say.
  bool primary_is_active(DeviceOrdinal) const noexcept;
  // Returns a context of this device that is alive, whatever the program did; 0 where none is
  // known.
  ContextId live_context_on(DeviceOrdinal) const noexcept;

 private:
  int ask_device_count() noexcept;

  const driver::RealDriver& real_;
  const LiveContexts& contexts_;
  std::atomic<int> device_count_{0};  // 0: the driver was not asked yet
};

}  // namespace cuwarden::tracking
