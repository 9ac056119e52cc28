// Streams, modules and executable graphs of the program, with the device memory that the driver
// took for each of them. The ledger has a record for each object, in the group of the call that
// made it, so that objects which are never destroyed show up like other leaks.
//
// The driver cuts the memory of such objects from chunks of its own. So an object may seem to take
// a whole chunk, and the next ones nothing; and the driver may keep a chunk after the object's end,
// for later objects. A kept chunk stays in the device's sum of the kind (ImplicitBytes), and the
// records of later objects get it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/write/allocation_records/record_fields.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/tracking/call_sites.hpp"
#include "runtime_hooks/tracking/caller.hpp"
#include "runtime_hooks/tracking/code_owners.hpp"
#include "runtime_hooks/tracking/devices/current_context.hpp"
#include "runtime_hooks/tracking/devices/device_readings.hpp"
#include "runtime_hooks/tracking/devices/live_contexts.hpp"
#include "runtime_hooks/tracking/implicit_memory.hpp"

namespace cuwarden::tracking {

// An object of the program for which the driver takes device memory by itself.
struct ImplicitObject {
  Kind kind{};               // Kind::stream, Kind::module or Kind::graph_exec.
  Space space{};             // The kind of handle.
  std::uint64_t handle = 0;  // The handle that the driver gave to the program.
};

// Bytes of device memory that a call took, measured by readings of the device before and after it;
// negative if it gave memory back. None: the call was not measured.
using Taken = std::optional<std::int64_t>;

// Records the program's streams, modules and executable graphs, and the device memory that the
// driver took for them. All functions may be called by several threads at once, and leave errno as
// it was.
//
// If a call could not be measured, its object waits: the device's next reading tells what all
// waiting objects took together, and each gets an equal part. That works only if no other call has
// changed the device's memory since the reading before (ImplicitMemory::Base). Otherwise the
// objects are only counted.
class ImplicitObjects final : public ReadingListener {
 public:
  // All arguments outlive the object.
  ImplicitObjects(ledger::Writer& ledger, const LiveContexts& contexts, ImplicitMemory& implicit,
                  CallSites& sites) noexcept
      : ledger_(ledger), contexts_(contexts), implicit_(implicit), sites_(sites) {}

  // Records an object that the call has made in the context.
  void made(const Caller&, const ImplicitObject&, const CurrentContext&, Taken) noexcept;
  // Adds what the driver took for an object after it was made, such as at an executable graph's
  // first launch. An object without a record is one that was made before recording began, or whose
  // code was loaded when it was first needed; it then gets a record in the call's group, unless the
  // driver took nothing.
  void took_more(const Caller&, const ImplicitObject&, const CurrentContext&, Taken) noexcept;

  // Returns the device on which the object of a record lies; no_device for an empty record.
  DeviceOrdinal device_of(const ledger::TakenRecord&) const noexcept;
  // Ends the object's record and returns it; empty if there is none. To be called before the
  // driver's call that destroys the object, since another thread may get the handle afterwards.
  ledger::TakenRecord take(const ImplicitObject&) noexcept;
  // Subtracts what the end of an object gave back from the device's sum of its kind. To be called
  // after the driver's call, with take()'s result. If the call was not measured, all that the
  // object had taken counts as given back. With a module or a library, the code of its kernels
  // ends.
  void ended(const ImplicitObject&, const ledger::TakenRecord&, DeviceOrdinal, Taken) noexcept;
  // Makes the object live again, because the driver refused to destroy it. `TakenRecord` is the
  // result of take().
  void not_ended(const ledger::TakenRecord&) noexcept;

  // Forgets objects of the context that wait, because the context has ended.
  void context_ended(ContextId) noexcept;
  // Returns the object that stands for the code of a kernel (CUfunction or CUkernel, as a number)
  // on the device, if it was loaded when the kernel was first needed.
  static ImplicitObject code_of(std::uint64_t kernel, DeviceOrdinal device) noexcept {
    return {Kind::module, Space::kernel, kernel ^ static_cast<std::uint64_t>(device.value) << 56};
  }
  // The modules and libraries to which kernels belong.
  CodeOwners owners;

  // Returns the number that device_was_read() needs: the epoch of the device's base.
  std::uint64_t reading_begins(DeviceOrdinal device) noexcept override {
    return implicit_.base_of(device).epoch;
  }
  // Gives the objects that wait on the device what they took, as the reading tells: the difference
  // to the reading before. Makes the reading the device's base.
  bool device_was_read(DeviceOrdinal, const driver::DeviceReading&,
                       std::uint64_t begun) noexcept override;
  void memory_has_changed(DeviceOrdinal device) noexcept override { implicit_.disturb(device); }

 private:
  // Most objects that can wait at the same time, on all devices; further ones are only counted.
  static constexpr std::size_t most_waiting = 512;
  // An object whose memory is not known yet.
  struct Waiting {
    ImplicitObject object;
    DeviceOrdinal device = no_device;  // no_device: the entry is unused
    // Group and context of the record that the object gets if it has none.
    GroupId group;
    ContextId context;
    std::uint64_t epoch = 0;  // ImplicitMemory::Base::epoch when the object was made
  };

  void add_record(const ImplicitObject&, GroupId, ContextId, std::uint64_t bytes) noexcept;
  // Adds bytes to the object's record. Without a record, one is made if `may_make` is true.
  void add_bytes(const Waiting&, std::uint64_t bytes, bool may_make) noexcept;
  // Removes all objects that wait and for which is_gone(entry) is true.
  template <class IsGone>
  void forget_waiting(IsGone is_gone) noexcept;
  // Returns the bytes that an object gets in addition to those that the driver took for it: a part
  // of what the driver kept from objects of this kind that have ended.
  std::uint64_t share_of_kept(Kind, DeviceOrdinal, std::uint64_t taken) noexcept;
  void wait(DeviceOrdinal, const Waiting&) noexcept;
  void book(Kind, DeviceOrdinal, std::int64_t bytes) noexcept;
  // Ends the records of code that belongs to the object, on all devices. Returns its bytes.
  std::uint64_t end_code_of(const ImplicitObject&) noexcept;

  ledger::Writer& ledger_;
  const LiveContexts& contexts_;
  ImplicitMemory& implicit_;
  CallSites& sites_;
  // A bit for each device that has records of kernels' code.
  std::atomic<std::uint64_t> devices_with_code_{0};
  // Guards `waiting_` and `count_`. While it is held, the ledger is changed, but the driver is not
  // called.
  FutexLock lock_;
  std::atomic<std::uint32_t> count_{0};  // objects that wait
  std::array<Waiting, most_waiting> waiting_{};
};

}  // namespace cuwarden::tracking
