// Contexts of the program, and the device memory that the driver takes in them for kernels: local
// memory, and the heap of device-side malloc. The ledger has a record for each context and for each
// call that made the driver take such memory, in the group of that call.
#pragma once

#include <array>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/record_fields.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/tracking/call_sites.hpp"
#include "runtime_hooks/tracking/caller.hpp"
#include "runtime_hooks/tracking/devices/current_context.hpp"
#include "runtime_hooks/tracking/devices/live_contexts.hpp"
#include "runtime_hooks/tracking/implicit_memory.hpp"

namespace cuwarden::tracking {

// Records the program's contexts, and the device memory that the driver takes in them for kernels:
// local memory, and the heap of malloc() in kernels. All functions may be called by several threads
// at once, and leave errno as it was.
//
// The ledger has a sum for each device and kind of implicit memory (ledger::ImplicitBytes). Bytes
// that are added to the sum are added to a record, too, and bytes that are subtracted from it are
// taken from records. The record of a device's first context has no bytes: a reading of the device
// cannot tell them from other processes' memory. ImplicitBytes::used_after_first_context has both.
class ContextMemory {
 public:
  // All arguments outlive the object.
  ContextMemory(ledger::Writer& ledger, const LiveContexts& contexts, ImplicitMemory& implicit,
                CallSites& sites) noexcept
      : ledger_(ledger), contexts_(contexts), implicit_(implicit), sites_(sites) {}

  // Records a context that the call has made, with 0 bytes; book() adds bytes later. Ends the
  // records of an earlier context with the same handle. `is_first`: true if the device had no other
  // context. Does nothing if the device's ordinal is not from 0 to 63.
  void made(const Caller&, const CurrentContext& made, bool is_first) noexcept;

  // Marks the bytes in a context's record as uncertain, because its memory could not be measured.
  // Not to be called for the device's first context. `handle`: the CUcontext or CUgreenCtx, as a
  // number.
  void was_not_measured(std::uint64_t handle) noexcept;
  // Records a green context that the call has made, with 0 bytes; book() adds bytes later. `green`:
  // its CUgreenCtx, as a number. `primary`: the device's primary context, which owns it. Does
  // nothing if the device's ordinal is not from 0 to 63.
  void made_green(const Caller&, const CurrentContext& primary, std::uint64_t green) noexcept;
  // The result of begin_green_end(): the record of a green context that is about to be destroyed,
  // and the primary context that owns it. Both are empty if the context had no record. The
  // primary context is empty, too, if there was no room to remember it (most_records).
  struct GreenEnding {
    ledger::TakenRecord record;
    CurrentContext primary;
  };
  // Ends the record of a green context. To be called before the driver's call that destroys it,
  // since another thread may get the handle afterwards. The driver keeps the memory until the
  // primary context ends, so its bytes stay in the device's sum. (Measured on an H200: each of 20
  // green contexts took 4 to 6 MiB. Their ends gave nothing back, and the next ones took 4 MiB each
  // again.)
  GreenEnding begin_green_end(std::uint64_t green) noexcept;
  // Undoes begin_green_end() of a green context that the driver refused to destroy.
  void green_not_ended(const GreenEnding&) noexcept;

  // Adds the change to the device's sums of implicit memory in the ledger, and changes records by
  // the same bytes. Local memory and heap that were added get a record in the group of the call.
  // Bytes that were added for contexts go to the record of the given context. Bytes that were
  // subtracted are taken from the newest records first, those of the given context before those of
  // others. `in`: the context in which the call was made, and its device.
  void book(const Caller&, const CurrentContext& in, const ledger::ImplicitChange&) noexcept;

  // Ends the records of a context that has ended, of its green contexts, and of memory that the
  // driver took in it for kernels. Subtracts their bytes from the sums of the context's device, and
  // returns these bytes. Both include bytes that the driver kept of destroyed green contexts. If
  // the context was the device's first one, subtracts and returns used_after_first_context, too.
  // `device`: the context's device; no_device: unknown. Returns 0, with nothing done, if the
  // object's lock cannot be had.
  std::uint64_t context_ended(ContextId, DeviceOrdinal device) noexcept;

 private:
  // Most entries of `entries_`, on all devices together. Each stands for the record of a context,
  // or of memory that the driver took in one for kernels. If no entry is left, bytes for kernels
  // are added to the newest record of their kind.
  static constexpr std::size_t most_records = 512;
  // Names a live allocation record: that of a context, of a green context, or of memory that the
  // driver took in a context for kernels (local memory, or the heap of malloc() in kernels).
  struct Entry {
    Kind kind{};            // Kind::context, Kind::local_memory or Kind::heap
    bool is_first = false;  // true for a device's first context
    DeviceOrdinal device;   // device of the context
    ContextId context;      // context that owns the memory
    // Address under which the ledger has the record: the handle of a context or green context, a
    // number from 1 for memory for kernels.
    DeviceAddress address{};
    // True for the record of the context itself, false for those of memory in it and of its green
    // contexts.
    bool is_context() const noexcept {
      return kind == Kind::context && address.value == context.value;
    }
  };
  // Memory of destroyed green contexts of one device, which the driver keeps until `primary` ends.
  struct KeptByGreens {
    ContextId primary;  // the primary context that owned the green contexts
    std::uint64_t bytes = 0;
  };
  // Returns the kind of number that the record's address is.
  static Space space_of(const Entry& entry) noexcept {
    return entry.kind == Kind::context ? Space::context : Space::for_kernels;
  }

  // Makes a record of `bytes` in the group, for the context or the memory that Entry describes, and
  // adds Entry to `entries_` if there is room. A record of memory for kernels gets a new address.
  // The caller does not hold the lock.
  void add(Entry, GroupId, std::uint64_t bytes) noexcept;
  // Adds `bytes` that the call took. For Kind::context, they go to the record of the context `in`.
  // For other kinds, they get a record of their own in the call's group. If that is not possible,
  // grow_newest() is called.
  void grow(const Caller&, Kind, const CurrentContext& in, std::uint64_t bytes) noexcept;
  // Adds `bytes` to the newest record of the kind in the context `in`. If it has none, adds them to
  // the newest record of the kind on the device. Does nothing if there is none.
  void grow_newest(Kind, const CurrentContext& in, std::uint64_t bytes) noexcept;
  // Subtracts `bytes` from the records of this kind on the device, the newest first, those of the
  // context `in` before those of others.
  void shrink(Kind, const CurrentContext& in, std::uint64_t bytes) noexcept;
  // Subtracts up to `bytes` from the record of the entry with this index. Returns the bytes that
  // are left to subtract. A record of memory for kernels ends with its last byte, and its entry is
  // removed. The caller holds the lock.
  std::uint64_t shrink_at(std::size_t index, std::uint64_t bytes) noexcept;

  ledger::Writer& ledger_;
  const LiveContexts& contexts_;
  ImplicitMemory& implicit_;
  CallSites& sites_;
  // Guards `entries_`, `count_`, `last_number_` and `kept_`. The first `count_` of `entries_` are
  // in use, the oldest first. The holder of the lock may change the ledger, but calls neither the
  // driver nor the program.
  FutexLock lock_;
  std::size_t count_ = 0;
  std::uint64_t last_number_ = 0;  // address (a count) of the latest record for kernels
  std::array<Entry, most_records> entries_{};
  // Memory of destroyed green contexts that the driver keeps, by the device's ordinal.
  std::array<KeptByGreens, LiveContexts::device_limit> kept_{};
};

}  // namespace cuwarden::tracking
