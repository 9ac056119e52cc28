// The device memory that one call takes without having been asked for memory, measured by reading
// the device before and after the call.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/hooks/hooked_call.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"

namespace cuwarden::hooks {

// After a call on the current device that asks for no memory and may need some: does something only
// for a refusal for lack of memory.
void note_refusal(HookedCall&, CUresult, ledger::Asked) noexcept;

// Around one call: what the device of the current context has less afterwards.
class ImplicitSpan {
 public:
  explicit ImplicitSpan(HookedCall& call) noexcept : call_(call) {}
  ~ImplicitSpan();
  ImplicitSpan(const ImplicitSpan&) = delete;
  ImplicitSpan& operator=(const ImplicitSpan&) = delete;

  // Before the call; does nothing where the device cannot be read.
  void begin(DeviceOrdinal) noexcept;
  bool has_begun() const noexcept { return begun_; }
  // After it. Nothing where it was not begun, or is not to be believed.
  std::optional<std::int64_t> taken() noexcept;
  // The same, of a call that loads code: null also where no code is as large, and another process
  // took that meanwhile.
  std::optional<std::int64_t> taken_by_code() noexcept;
  // Books it, and the reading that it comes from.
  void book(const ledger::ImplicitChange&) noexcept;
  // A refused call made the driver give back what kernels of the context had, even what it has from
  // the start (measured: 414 MiB after a stack limit, 1,342 MiB after a launch that needed 2,112);
  // the launches that follow take it again.
  void book_given_back(std::uint64_t bytes, ContextId) noexcept;
  // What is in use inside a device's first context, which is current, and not recorded otherwise.
  void book_first_context(DeviceOrdinal) noexcept;

 private:
  HookedCall& call_;
  DeviceOrdinal device_ = no_device;
  bool begun_ = false;
  driver::DeviceReading before_, after_;
};

}  // namespace cuwarden::hooks
