// The device memory that one call takes without having been asked for memory, measured by reading
// the device before and after the call.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"

namespace cuwarden::hooks {

// Measures by how much one call lowers the free bytes of the current context's device.
class ImplicitSpan {
 public:
  explicit ImplicitSpan(HookedCall& call) noexcept : call_(call) {}
  ~ImplicitSpan();
  ImplicitSpan(const ImplicitSpan&) = delete;
  ImplicitSpan& operator=(const ImplicitSpan&) = delete;

  // To be called before the measured call. Does nothing if the device cannot be read.
  void begin(DeviceOrdinal) noexcept;
  bool has_begun() const noexcept { return begun_; }
  // To be called after the measured call. Returns the bytes that it took, negative if it gave
  // memory back. Returns nothing if the span was not begun, or if another call disturbed the
  // measurement.
  std::optional<std::int64_t> taken() noexcept;
  // Returns taken() for a call that loads code. Returns nothing also if the difference is larger
  // than any code: another process took memory meanwhile.
  std::optional<std::int64_t> taken_by_code() noexcept;
  // Writes the change, and the device reading behind it, into the ledger.
  void book(const ledger::ImplicitChange&) noexcept;
  // Books memory that a refused call made the driver take from the context's kernels. It may even
  // be memory that a context has from its start (measured: 414 MiB after a stack limit, 1,342 MiB
  // after a launch that needed 2,112). Later launches take it again.
  void book_given_back(std::uint64_t bytes, ContextId) noexcept;
  // Books the memory that is in use on the device and recorded nowhere else. The device's first
  // context must be current.
  void book_first_context(DeviceOrdinal) noexcept;

 private:
  HookedCall& call_;
  DeviceOrdinal device_ = no_device;
  bool begun_ = false;
  driver::DeviceReading before_, after_;
};

}  // namespace cuwarden::hooks
