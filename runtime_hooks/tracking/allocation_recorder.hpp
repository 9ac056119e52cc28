// Turns allocations and frees that hooks saw into records of the ledger: adds the stack, the
// context and the device. Refused requests are recorded by rescue/refusals.hpp.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/record_fields.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/tracking/allocation.hpp"
#include "runtime_hooks/tracking/call_sites.hpp"
#include "runtime_hooks/tracking/devices/device_queries.hpp"
#include "runtime_hooks/tracking/devices/device_readings.hpp"
#include "runtime_hooks/tracking/devices/live_contexts.hpp"
#include "runtime_hooks/tracking/freed_addresses.hpp"
#include "runtime_hooks/tracking/implicit_memory.hpp"

namespace cuwarden::tracking {

// An object that is told when the ledger, the file with a record of each allocation, is no longer
// complete.
class CompletenessListener {
 public:
  // Is called at most once for each reason (a full table, or recording that has stopped) for which
  // the ledger, the file with a record of each allocation, is not complete. The calling thread is
  // inside a CUDA call of the program, or inside PyTorch's allocator with that allocator's lock
  // held. It holds no lock of cuwarden's.
  virtual void ledger_is_incomplete(ledger::Reason) noexcept = 0;

 protected:
  ~CompletenessListener() = default;
};

// Records the allocations and frees that hooks saw in the ledger, with stack, context and device.
// All functions leave errno as it was.
class AllocationRecorder {
 public:
  // All arguments outlive the object.
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

  // Records an allocation that the driver or cuwarden's pool has served in the current context.
  // `Caller` is the program's call, whose stack is recorded, too. An address of 0 gets no record.
  // Also reads now and then how full the current context's device is. Returns the device on which
  // the allocation lies; no_device for host memory, or if the driver does not say.
  DeviceOrdinal allocated(const Caller&, const Allocation&) noexcept;
  // Ends the ledger's record of the allocation with this address or handle, counts a free, and
  // returns the record; an empty one if there is none. `Space` is the kind of number that `address`
  // is. Must be called before the driver's free, after which another thread's allocation may get
  // the address. The caller must call settle() after the free.
  ledger::TakenRecord take(Space, std::uint64_t address) noexcept;
  // Confirms or undoes take() after the driver's free. `TakenRecord` is the result of take(), and
  // `CUresult` that of the free. If the driver refused the free, puts the record back into the
  // ledger; otherwise adds the address to freed_addresses. CUDA_ERROR_DEINITIALIZED is no refusal:
  // the process is ending, and the driver has freed the memory by itself. If the record is empty
  // and the driver did free something, counts a free of unknown memory in the ledger, unless the
  // ledger is incomplete. After a free of known memory, also reads now and then how full the
  // current context's device is.
  void settle(const ledger::TakenRecord&, CUresult) noexcept;

  // Stops the counting of releases that have no record: from now on, unknown_release() does
  // nothing. Must be called after the driver has made a handle that gets no record, such as one of
  // a multicast object.
  void handle_without_record() noexcept { unrecorded_.store(true, std::memory_order_relaxed); }
  // Counts in the ledger that the driver released a handle for which there is no record. Does
  // nothing if the ledger is incomplete, or once handle_without_record() was called: the handle may
  // be one that never had a record.
  void unknown_release() noexcept;

  // Tells the constructor's `listener` each reason for which the ledger has become incomplete and
  // of which the listener was not told yet. The reasons are: a table of the ledger is full, or
  // recording has stopped.
  void give_notice() noexcept {
    const std::uint32_t reasons = ledger_.file.header().reasons.load(std::memory_order_relaxed);
    if ((reasons & noteworthy & ~noticed_.load(std::memory_order_relaxed)) != 0)
      give_notice_of(reasons & noteworthy);
  }

  // Addresses that the program has freed. Old pointers to them may be left in its memory.
  FreedAddresses freed_addresses;

 private:
  // Tells the listener each of the reasons of which it was not told yet, and marks them as told.
  // `reasons`: bits of ledger::Reason, only those in `noteworthy`. Keeps errno.
  void give_notice_of(std::uint32_t reasons) noexcept;
  void unknown_free() noexcept;

  // Reasons (bits of ledger::Reason) for an incomplete ledger of which the listener is told: a
  // table of the ledger is full, or recording has stopped.
  static constexpr std::uint32_t noteworthy =
      ledger::reason_ledger_full | ledger::reason_recording_stopped;

  ledger::Writer& ledger_;
  DeviceQueries& queries_;
  LiveContexts& contexts_;
  DeviceReadings& readings_;
  ImplicitMemory& implicit_;
  CallSites& sites_;
  CompletenessListener& listener_;
  // Reasons (bits of ledger::Reason) for an incomplete ledger of which the listener was told.
  std::atomic<std::uint32_t> noticed_{0};
  // True once the driver has made a handle that gets no record, such as one of a multicast object.
  std::atomic<bool> unrecorded_{false};
};

}  // namespace cuwarden::tracking
