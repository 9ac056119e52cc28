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
  // `call`: the program's call of a hooked function; must outlive this object. The function's hook
  // calls the driver, and that call of the driver is measured. The constructor measures nothing:
  // begin() begins the measurement.
  explicit ImplicitSpan(HookedCall& call) noexcept : call_(call) {}
  // Ends a measurement that is still under way, without a result.
  ~ImplicitSpan();
  ImplicitSpan(const ImplicitSpan&) = delete;
  ImplicitSpan& operator=(const ImplicitSpan&) = delete;

  // Reads how much memory of the device is free; to be called right before the measured call. The
  // device must be that of the current context. Does nothing if the program's call is not recorded,
  // the ordinal is not from 0 to 63, or the device cannot be read.
  void begin(DeviceOrdinal) noexcept;
  // True while a measurement is under way: from a begin() that could read the device, to taken().
  bool has_begun() const noexcept { return begun_; }
  // Ends the measurement; to be called right after the measured call. Returns the bytes of device
  // memory that the call took, negative if it gave memory back. Returns none if no measurement is
  // under way or the device cannot be read now. Returns none, too, if another call of this process
  // may have changed the device's memory in between. Returns none if another process may have done
  // so; is_doubtful() is then true. `plausible_bytes`: most bytes that such a call is known to
  // take. If it seems to have taken more, the list of the processes on the device is asked
  // (Neighbours::ask()).
  std::optional<std::int64_t> taken(std::int64_t plausible_bytes = INT64_MAX) noexcept;
  // True if taken() has returned none because another process may have changed the device's memory
  // during the call.
  bool is_doubtful() const noexcept { return is_doubtful_; }
  // Writes taken()'s reading of the device to the ledger. To be called after taken() has returned a
  // number.
  void note_reading() noexcept;
  // Enters a change of the measured device's implicit memory (memory that calls take without being
  // asked for it) into the ledger: into the device's figures, and into the records of contexts and
  // of memory for kernels. Also writes taken()'s reading of the device there. To be called after
  // taken() has returned a number. `context`: the context in which the driver took or gave back the
  // memory; 0: unknown.
  void book(const ledger::ImplicitChange&, ContextId context) noexcept;
  // Subtracts `bytes` from the device's implicit memory in the ledger. To be called after taken(),
  // if the driver refused the measured call, but first gave `bytes` back to the device: memory for
  // kernels of `context`. Later launches in the context take the memory again, so all kernels count
  // as not launched from now on.
  //
  // The bytes may include memory that the context has had from its start. Measured: a refused
  // launch that needed 2,112 MiB of local memory gave 1,342 MiB back, and a refused stack limit
  // (cuCtxSetLimit) 414 MiB.
  void book_given_back(std::uint64_t bytes, ContextId context) noexcept;
  // Enters the memory that `first` took into the ledger: all memory in use on the device, less that
  // in records and in memory pools of this process. If that is more than a context can take, NVML
  // is asked how much this process holds. Other processes' memory is included if NVML was not asked
  // or does not tell. `first` is the device's first context, was just made, and must be current.
  // Does nothing if the device cannot be read.
  void book_first_context(DeviceOrdinal, ContextId first) noexcept;

 private:
  HookedCall& call_;  // the program's call, whose driver call is measured
  // The measured device; no_device before begin().
  DeviceOrdinal device_ = no_device;
  bool begun_ = false;  // True while the measurement is under way.
  // Number that ImplicitMemory::begin_span() has given to the measurement; 0: none was begun.
  std::uint64_t number_ = 0;
  // Reads the memory of the current context's device, and adds the time of the reading to that of
  // all readings. Returns none if the device cannot be read.
  std::optional<driver::DeviceReading> read() noexcept;
  // Stores when the measured call begins and how many bytes of the device this process holds.
  // confirmed() needs both, since another process may change the device's memory during the call.
  void expect_neighbours() noexcept;
  // Sets the device's base, the reading of free memory from which later calls are measured, to that
  // after the measured call. `taken`: bytes that the call took; none if unknown.
  void set_base(std::optional<std::int64_t> taken) noexcept;
  // Returns the bytes that the call took, which are `taken` unless this process's own figure (NVML)
  // says otherwise. Returns none, and makes is_doubtful() true, if another process may have changed
  // the device's memory during the call. `taken`: difference of the two readings.
  // `plausible_bytes`: most bytes that such a call is known to take. If `taken` is more, the
  // processes on the device are listed first.
  std::optional<std::int64_t> confirmed(std::int64_t taken, std::int64_t plausible_bytes) noexcept;
  // Total and free bytes of the device's memory, before the measured call (`before_`) and after it.
  driver::DeviceReading before_, after_;
  // Version of the device's base (the latest reading of its free memory) before the measured call.
  // An equal version later proves that the base was not replaced in between.
  tracking::FreeBases::Version base_version_ = 0;
  // Time at which the measured call began (Neighbours::now_ns()). 0: not set, as no other process
  // seemed to use the device.
  std::uint64_t begun_ns_ = 0;
  // Bytes of the device that this process held before the measured call, as NVML told. Null:
  // unknown, or not asked, as no other process seemed to use the device.
  std::optional<std::uint64_t> own_before_;
  // Bytes of the device that this process held after the measured call, as NVML told. Null: not
  // known, or not asked.
  std::optional<std::uint64_t> own_after_;
  // Result of is_doubtful(): true if another process may have changed the device's memory during
  // the measured call.
  bool is_doubtful_ = false;
};

}  // namespace cuwarden::hooks
