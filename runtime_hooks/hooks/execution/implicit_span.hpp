// The device memory that one call takes without having been asked for memory, measured by reading
// the device before and after the call.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"

namespace cuwarden::hooks {

// A measurement of one driver call: by how much it lowers the free memory of the current context's
// device. The driver takes such implicit memory for contexts, code and the like, without being
// asked for it.
class ImplicitSpan {
 public:
  // `call` is the hooked call inside which the measured call is made. Nothing is measured before
  // begin().
  explicit ImplicitSpan(HookedCall& call) noexcept : call_(call) {}
  // Ends the measurement if taken() was not called.
  ~ImplicitSpan();
  ImplicitSpan(const ImplicitSpan&) = delete;
  ImplicitSpan& operator=(const ImplicitSpan&) = delete;

  // Begins the measurement of the device, right before the call. Does nothing if the hooked call is
  // not recorded or the device cannot be read.
  void begin(DeviceOrdinal) noexcept;
  // True between a begin() that could read the device, and taken().
  bool has_begun() const noexcept { return begun_; }
  // Ends the measurement, right after the call. Returns the bytes of device memory that the call
  // took, negative if it gave memory back. Returns none if begin() did not read the device, or if
  // another call may have changed the device's memory meanwhile.
  std::optional<std::int64_t> taken() noexcept;
  // Ends the measurement as taken() does, after a call that loads code. Returns none also if more
  // than 2 GiB were taken, which is no code: another process took memory meanwhile.
  std::optional<std::int64_t> taken_by_code() noexcept;
  // Adds the change to the measured device's implicit memory in the ledger. Enters the reading of
  // the device that taken() made at the end of the measurement. To be called after taken().
  void book(const ledger::ImplicitChange&) noexcept;
  // To be called after taken(), if the measured call was refused and the driver gave `bytes` back
  // to the device in vain: memory of the kernels of this context. Subtracts `bytes` from the
  // device's implicit memory in the ledger. Later launches in the context take that memory again,
  // so all kernels count as not launched. The bytes may even include memory that the context has
  // had from its start (measured: 414 MiB after a stack limit, 1,342 MiB after a launch that needed
  // 2,112).
  void book_given_back(std::uint64_t bytes, ContextId) noexcept;
  // Books memory that is in use on the device, and in no record, as that of the device's first
  // context. That context was just made, and must be current.
  void book_first_context(DeviceOrdinal) noexcept;

 private:
  HookedCall& call_;
  DeviceOrdinal device_ = no_device;
  bool begun_ = false;  // True while the measurement is under way.
  // Size and free bytes of the device before and after the measured call.
  driver::DeviceReading before_, after_;
};

}  // namespace cuwarden::hooks
