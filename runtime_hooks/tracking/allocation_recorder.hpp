// Turns allocations and frees that hooks saw into records of the ledger: adds the stack, the
// context and the device. Refused requests are recorded by rescue/refusals.hpp.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/write/allocation_records/record_fields.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/tracking/allocation.hpp"
#include "runtime_hooks/tracking/call_sites.hpp"
#include "runtime_hooks/tracking/device_queries.hpp"
#include "runtime_hooks/tracking/device_readings.hpp"
#include "runtime_hooks/tracking/implicit_memory.hpp"
#include "runtime_hooks/tracking/live_contexts.hpp"

namespace cuwarden::tracking {

// An object that is told when the ledger, the file with a record of each allocation, is no longer
// complete.
class CompletenessListener {
 public:
  // Is called once for each reason for which the ledger is not complete, on the thread that met the
  // reason. No lock of cuwarden's is held meanwhile.
  virtual void ledger_is_incomplete(ledger::Reason) noexcept = 0;

 protected:
  ~CompletenessListener() = default;
};

// Records the allocations and frees that hooks saw in the ledger, with stack, context and device.
// All functions leave errno as it was.
class AllocationRecorder {
 public:
  // The caller keeps all arguments alive as long as the object.
  AllocationRecorder(ledger::Writer& ledger, DeviceQueries& queries, LiveContexts& contexts,
                     DeviceReadings& readings, ImplicitMemory& implicit, CallSites& sites,
                     CompletenessListener& listener) noexcept
      : ledger_(ledger),
        queries_(queries),
        contexts_(contexts),
        readings_(readings),
        implicit_(implicit),
        sites_(sites),
        listener_(listener) {}

  // Records an allocation that the driver or cuwarden's pool has served. `Caller` is the program's
  // call, whose stack is recorded, too. Returns the device that the allocation is recorded on;
  // no_device for host memory.
  DeviceOrdinal allocated(const Caller&, const Allocation&) noexcept;
  // Removes the record of the allocation at an address, and returns it; an empty one if there is
  // none. To be called before the driver's free. Otherwise another thread's allocation might get
  // the same address and find the old record.
  ledger::TakenRecord take(Space, std::uint64_t address) noexcept;
  // Ends a free that take() has begun, after the driver's free has returned `CUresult`. If the
  // driver refused, the record is put back. CUDA_ERROR_DEINITIALIZED is no refusal: the process is
  // ending, and the driver has freed the memory by itself. If the record is empty and the driver
  // did free something, counts an unknown free.
  void settle(const ledger::TakenRecord&, CUresult) noexcept;

  // Remembers that the driver made a handle that gets no record: one of a multicast object, or one
  // derived from it.
  void handle_without_record() noexcept { unrecorded_.store(true, std::memory_order_relaxed); }
  // Counts an unknown free: the driver released a handle or unmapped a range for which there is no
  // record. Does nothing once handle_without_record() was called, since the handle may then be one
  // without record.
  void unknown_release() noexcept;

  // Tells the listener each reason for which the ledger has become incomplete and of which it was
  // not told yet.
  void give_notice() noexcept {
    const std::uint32_t reasons = ledger_.header().reasons.load(std::memory_order_relaxed);
    if ((reasons & noteworthy & ~noticed_.load(std::memory_order_relaxed)) != 0)
      give_notice_of(reasons & noteworthy);
  }

 private:
  void give_notice_of(std::uint32_t reasons) noexcept;
  void unknown_free() noexcept;

  // Reasons (bits) of which the listener is told: a table of the ledger is full, or recording has
  // stopped.
  static constexpr std::uint32_t noteworthy =
      ledger::reason_ledger_full | ledger::reason_recording_stopped;

  ledger::Writer& ledger_;
  DeviceQueries& queries_;
  LiveContexts& contexts_;
  DeviceReadings& readings_;
  ImplicitMemory& implicit_;
  CallSites& sites_;
  CompletenessListener& listener_;
  // Reasons (bits) of which the listener was told.
  std::atomic<std::uint32_t> noticed_{0};
  // True once handle_without_record() was called.
  std::atomic<bool> unrecorded_{false};
};

}  // namespace cuwarden::tracking
