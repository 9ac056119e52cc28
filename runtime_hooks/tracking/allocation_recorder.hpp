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

// Hears once of each reason for which the ledger is no longer complete, on the thread that met the
// reason, with no lock held. The shim implements the interface.
class CompletenessListener {
 public:
  virtual void ledger_is_incomplete(ledger::Reason) noexcept = 0;

 protected:
  ~CompletenessListener() = default;
};

class AllocationRecorder {
 public:
  // All references outlive the object.
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

  // All functions leave errno as it was.

  // Records an allocation that was served. Returns the device that it is recorded on, no_device for
  // host memory.
  DeviceOrdinal allocated(const Caller&, const Allocation&) noexcept;
  // Removes the record of an address, and returns it; an empty one if the address is not recorded.
  // To be called before the real free, so that another thread's allocation at the same address does
  // not find the old record.
  ledger::TakenRecord take(Space, std::uint64_t address) noexcept;
  // To be called after the real free: puts the record back where the driver refused. A driver that
  // refuses only because the process is ending has freed the memory as far as the program is
  // concerned.
  void settle(const ledger::TakenRecord&, CUresult) noexcept;

  // Notes that a handle was made that gets no record: a multicast object, or a handle made from
  // one.
  void handle_without_record() noexcept { unrecorded_.store(true, std::memory_order_relaxed); }
  // Notes that the driver released a handle, or unmapped a range, without a record. Counted as an
  // unknown free, unless handle_without_record() was ever called.
  void unknown_release() noexcept;

  // Tells the listener if the ledger has become incomplete since the last call.
  void give_notice() noexcept {
    const std::uint32_t reasons = ledger_.header().reasons.load(std::memory_order_relaxed);
    if ((reasons & noteworthy & ~noticed_.load(std::memory_order_relaxed)) != 0)
      give_notice_of(reasons & noteworthy);
  }

 private:
  void give_notice_of(std::uint32_t reasons) noexcept;
  void unknown_free() noexcept;

  static constexpr std::uint32_t noteworthy =
      ledger::reason_ledger_full | ledger::reason_recording_stopped;

  ledger::Writer& ledger_;
  DeviceQueries& queries_;
  LiveContexts& contexts_;
  DeviceReadings& readings_;
  ImplicitMemory& implicit_;
  CallSites& sites_;
  CompletenessListener& listener_;
  std::atomic<std::uint32_t> noticed_{0};  // Reason bits
  std::atomic<bool> unrecorded_{false};
};

}  // namespace cuwarden::tracking
