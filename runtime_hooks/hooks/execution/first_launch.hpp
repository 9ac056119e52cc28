// Measures the device memory that a kernel's first launch takes. The launch brings the kernel's
// code to the device. If the kernel's threads need more local memory than those of all kernels
// before, the driver takes that, too: enough for as many threads as the device can hold at once.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/driver/gate_scope.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/hooks/execution/implicit_span.hpp"
#include "runtime_hooks/tracking/handle_set.hpp"

namespace cuwarden::hooks {

// Measures the device memory that a kernel's first launch takes: for its code, for local memory of
// its threads, or for the heap of device-side malloc. The object is made right before the driver's
// launch, and done() is called right after it.
class FirstLaunch {
 public:
  // Reads the free memory of the current context's device if ImplicitMemory::may_read() allows one
  // more reading, or if the launch may take gigabytes. Asks the driver for the kernel's need of
  // local memory, which may load the kernel's code. Does nothing if `HookedCall` is not recorded.
  // `HookedCall` is the program's call, which outlives the object, and `CUfunction` the kernel.
  // `block_threads` is the number of threads of a block; 0: unknown.
  FirstLaunch(HookedCall&, CUfunction, std::uint64_t block_threads) noexcept;
  // Enters the device memory that the launch took into the ledger. `CUresult` is the launch's
  // result. After a success, remembers the kernel as launched, unless the launch seems to have been
  // captured into a graph. After a failure, returns the memory that the launch needed. Does nothing
  // if the call is not recorded.
  rescue::Need done(CUresult) noexcept;

 private:
  // Returns the bytes of local memory that each thread of the kernel needs; null if the driver does
  // not say.
  std::optional<std::uint64_t> local_bytes() const noexcept;
  // Ends the measurement that began before the call of local_bytes(), by which the driver may load
  // the kernel's code. Enters the bytes that local_bytes() took into the ledger as that code's.
  // Does nothing if no measurement is under way.
  void measure_code() noexcept;
  // Returns true if the launch seems to have been captured into a graph instead of being run. Then
  // also notes the kernel's need of local memory, for the graph's instantiation. `taken`: bytes of
  // device memory that the launch took; none (not measured): the result is false.
  bool was_captured(std::optional<std::int64_t> taken) const noexcept;
  // Returns the bytes of device memory that the launch, which failed with this result, needed for
  // local memory or for the heap of device-side malloc. 0 if unknown, or if it needed neither.
  std::uint64_t bytes_that_lacked(CUresult) const noexcept;
  // Returns the bytes of the heap of device-side malloc if the device has no room for the heap;
  // otherwise 0. To be called for a launch that failed with CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES.
  // Returns 0, too, if the block may have too many threads, or if the driver does not say.
  // `set_bytes`: size that the program has set for the heap; 0: no heap is to be made.
  std::uint64_t heap_that_lacked(std::uint64_t set_bytes) const noexcept;
  // Enters the device memory that the successful launch took into the ledger. `taken`: its bytes,
  // negative if memory became free; none: not measured, and only the kernel's need of local memory
  // is entered.
  void succeeded(std::optional<std::int64_t> taken) noexcept;
  // Records in the ledger that the kernel's code was loaded to the device, and took `bytes`; none:
  // not measured.
  void code_loaded(std::optional<std::int64_t> bytes) noexcept;
  HookedCall& call_;                   // the program's call, which launches the kernel
  const CUfunction kernel_;            // the launched kernel
  const std::uint64_t block_threads_;  // number of threads of a block of the launch; 0: unknown
  ImplicitSpan span_;                  // the measurement of the launch
  // The current context at the launch, and its device.
  CurrentContext here_;
  // The device's base before the launch: the latest reading of its free memory, from which calls
  // without readings of their own are measured.
  tracking::FreeBases::Base base_;
  // Bytes of local memory that each thread of the kernel needs; 0 if none, or if the driver does
  // not say.
  std::uint64_t local_needed_ = 0;
  // True if measure_code() has measured the kernel's code. The launch itself then takes local
  // memory and a heap; all else that it takes is managed memory, which came to the device.
  bool is_code_measured_ = false;
};

// Calls `launch`, the driver's function for the first launch of `kernel`, inside the submission
// gate, at which threads wait while cuwarden moves memory. Measures the device memory that the
// launch takes, and enters it into the ledger if `call` is recorded. If the driver refuses the
// launch for lack of memory, rungs (ordered attempts to serve a refused request) make room and
// launch again; none does if rescues are off. Returns the result for the program. `block_threads`
// is the number of threads of a block; 0: unknown.
template <class Launch>
CUresult first_launch(HookedCall& call, CUfunction kernel, std::uint64_t block_threads,
                      Launch launch) {
  rescue::Need need;
  const auto attempt = [&] {
    const driver::GateScope at_the_gate;
    FirstLaunch first(call, kernel, block_threads);
    const CUresult result = launch();
    need = first.done(result);
    return result;
  };
  const CUresult result = attempt();
  return call.rescued(result, need, attempt);
}

}  // namespace cuwarden::hooks
