// Streams, modules and executable graphs of the program, with the device memory that the driver
// took for each of them. The ledger has a record for each object, in the group of the call that
// made it, so that objects which are never destroyed show up like other leaks.
//
// The driver cuts the memory of such objects from chunks of its own. So an object may seem to take
// a whole chunk, and the next ones nothing; and the driver may keep a chunk after the object's end,
// for later objects. A kept chunk stays in the device's sum of the kind (ImplicitBytes), and the
// records of later objects get it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/record_fields.hpp"
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
  Space space{};             // The kind of number that `handle` is.
  std::uint64_t handle = 0;  // The handle that the driver gave to the program.
  // If the object is a library, or a kernel's code: the device that has loaded this copy of it
  // (each device loads a copy of its own). no_device for streams, modules and executable graphs.
  DeviceOrdinal loaded_on = no_device;

  // Returns the address that the object has in its record: the handle, with the device's ordinal in
  // its highest bits.
  DeviceAddress address() const noexcept {
    const std::uint64_t device =
        loaded_on == no_device ? 0 : static_cast<std::uint64_t>(loaded_on.value);
    return {handle ^ device << 56};
  }
};

// Bytes of device memory that a call took, measured by readings of the device before and after it;
// negative if it gave memory back. None: the call was not measured.
using Taken = std::optional<std::int64_t>;

// A call that makes, uses or ends an object.
struct ObjectCall {
  const Caller& caller;        // the program's call
  const CurrentContext& here;  // the context in which the call was made
  // The device's base (a reading of its free memory) before the call.
  FreeBases::Base base;
  // Bytes of device memory that the call took; negative if it gave memory back. None: the call was
  // not measured.
  Taken taken;
  // True if `taken` is none because another process may have caused the change of the device's
  // memory during the call.
  bool is_doubtful = false;
};

// The share of an object's memory that the driver gives back to the device at the object's end, as
// measured ends of objects of one kind have shown. The driver keeps the rest for later objects.
class GivenBack {
 public:
  // `is_all`: what is presumed until ends of objects were measured. True: an object's end gives all
  // of its memory back; false: none of it.
  explicit GivenBack(bool is_all) noexcept : is_all_(is_all) {}
  // Notes that an end, or several, gave back `given` of the `known` bytes that the objects had.
  void was_measured(std::uint64_t known, std::uint64_t given) noexcept {
    known_.fetch_add(known, std::memory_order_relaxed);
    given_.fetch_add(std::min(known, given), std::memory_order_relaxed);
  }
  // Returns an estimate of the bytes that the driver gives back at an object's end; at most
  // `known`. `known`: bytes that the object has, as far as they are known.
  std::uint64_t likely(std::uint64_t known) const noexcept {
    const std::uint64_t given =
                            given_.load(std::memory_order_relaxed) + (is_all_ ? presumed_bytes : 0),
                        all = known_.load(std::memory_order_relaxed) + presumed_bytes;
    const double share = static_cast<double>(given) / static_cast<double>(all);
    return std::min(known, static_cast<std::uint64_t>(static_cast<double>(known) * share));
  }

 private:
  // Bytes of ended objects that the presumed share counts for, beside the measured ends. A few
  // measured ends alone do not tell the share that the driver gives back, because the driver moves
  // memory in chunks of some MiB.
  static constexpr std::uint64_t presumed_bytes = std::uint64_t{64} << 20;
  const bool is_all_;
  // Sums over all measured ends of objects of the kind: bytes that the objects had, and bytes that
  // their ends gave back.
  std::atomic<std::uint64_t> known_{0}, given_{0};
};

// Records the program's streams, modules and executable graphs, and the device memory that the
// driver took for them. All functions may be called by several threads at once, and leave errno as
// it was.
//
// If a call could not be measured, its object waits for the next reading of the device's free
// memory. The difference to the reading before (the base, in FreeBases) is what all waiting objects
// took together, and each gets an equal part. If another thread is inside a hooked call at that
// moment, a later reading is used instead. Bytes stay unknown if the base is forgotten before a
// reading, or if another process may have memory of the device. The objects are counted all the
// same.
//
// An object may end while it waits. If ends of its kind give nothing back, its memory is found in
// the same way.
//
// Records say if their bytes are estimates: record_bytes_uncertain and record_bytes_shared.
class ImplicitObjects final : public ReadingListener {
 public:
  // Makes a recorder of streams, modules and executable graphs that has recorded no object yet. All
  // arguments outlive the recorder.
  ImplicitObjects(ledger::Writer& ledger, const LiveContexts& contexts, ImplicitMemory& implicit,
                  CallSites& sites) noexcept
      : ledger_(ledger), contexts_(contexts), implicit_(implicit), sites_(sites) {}

  // Records the stream, module or executable graph that the call has made in the current context,
  // with the device memory that the driver took for it. Does nothing if the device's ordinal is not
  // from 0 to 63.
  void made(const ObjectCall&, const ImplicitObject&) noexcept;
  // Adds the memory that the driver took for an object after it was made, such as at an executable
  // graph's first launch. An object has no record if it was made before recording began, or if it
  // is code that was loaded when it was first needed. A measured call then gives it one in the
  // call's group, unless the driver took nothing. A call that was not measured gives one only to
  // code, once a reading shows the code's bytes. If another process may have caused the change
  // (ObjectCall::is_doubtful) and no reading will tell the bytes, any object gets a record, with 0
  // uncertain bytes. Does nothing if the device's ordinal is not from 0 to 63.
  void took_more(const ObjectCall&, const ImplicitObject&) noexcept;

  // The result of begin_end() for an object: its record, which is empty if it had none; its device;
  // and the bytes of code on that device that ends with it.
  struct Ending {
    ledger::TakenRecord record;
    DeviceOrdinal device = no_device;
    std::uint64_t code_bytes = 0;
    // Version of the device's base (its latest reading of free memory) before the driver's call; 0:
    // no base was known.
    FreeBases::Version base_version = 0;
  };
  // Ends the object's record. If the object is a module or a library, also ends the records of its
  // code on all devices. Subtracts the code's bytes on devices other than Ending::device from the
  // sums of those devices. `here`: the current device. An object without a record counts as lying
  // on this device. To be called before the driver's call that destroys the object, since another
  // thread may get the handles afterwards.
  Ending begin_end(const ImplicitObject&, DeviceOrdinal here) noexcept;
  // Subtracts from the device's sum of the kind the bytes that the end of an object gave back. To
  // be called after the driver's call that destroyed it. `Ending`: the result of begin_end().
  // `Taken`: bytes that the driver's call took; negative: it gave them back; none: not measured. If
  // not measured, a part of the object's bytes counts as given back: the same part as at measured
  // ends of its kind (GivenBack).
  void ended(Kind, const Ending&, Taken) noexcept;
  // Undoes begin_end() of an object that the driver refused to destroy. Records of its code stay
  // ended. The code's bytes stay in the sum of Ending::device, but not in the sums of other
  // devices. If the object was waiting for a reading, its bytes stay unknown. If ends of its kind
  // give little back, its part of the bytes that the reading shows as taken counts as memory that
  // the driver keeps.
  void not_ended(const Ending&) noexcept;

  // Removes the objects of a context that has ended from those that wait for a reading.
  void context_ended(ContextId) noexcept;
  // Returns the object that stands for the code of a kernel on the device, which is loaded when the
  // kernel is first needed. `kernel`: a CUfunction or CUkernel, as a number.
  static ImplicitObject code_of(std::uint64_t kernel, DeviceOrdinal device) noexcept {
    return {Kind::module, Space::kernel, kernel, device};
  }
  // The modules and libraries to which kernels belong.
  CodeOwners owners;

  // Returns the version of the device's base (a reading of its free memory), which
  // device_was_read() gets as `begun`.
  std::uint64_t reading_begins(DeviceOrdinal device) noexcept override {
    return implicit_.bases.reading_begins(device);
  }
  // Gives the objects that wait on the device their parts of the difference between this reading
  // and the device's base. If none waits, a difference is a sign of another process. Then makes the
  // reading the device's base. While another thread is inside a hooked call, does nothing of this
  // if a base is known. If the base is this process's own figure (Base::by_own), asks NVML, and
  // lets own_was_read() do the work. `begun`: the result of reading_begins() before this reading.
  // Returns false: the device's memory is not changed.
  bool device_was_read(DeviceOrdinal, const driver::DeviceReading&,
                       std::uint64_t begun) noexcept override;
  void memory_has_changed(DeviceOrdinal device) noexcept override { implicit_.disturb(device); }
  // Does the work of device_was_read() while other processes may hold memory of the device. Uses
  // `own_bytes`, the bytes that this process holds, as NVML reports them. The device's total less
  // these bytes becomes the base, or the free bytes if no other process is left. While another
  // thread is inside a hooked call, does nothing of this if a base is known. `begun`: the version
  // of the device's base from before NVML was asked.
  void own_was_read(DeviceOrdinal, const driver::DeviceReading&, std::uint64_t own_bytes,
                    FreeBases::Version begun) noexcept;

 private:
  // Most objects that can wait for a reading at the same time, on all devices. The bytes of further
  // ones stay unknown.
  static constexpr std::size_t most_waiting = 512;
  // Most bytes that one object is believed to take. If two readings differ by more, another process
  // has taken memory.
  static constexpr std::uint64_t most_bytes = std::uint64_t{2} << 30;
  // An entry of `waiting_`: an object whose bytes are unknown until the next reading of the
  // device's free memory. Or, if `ended` is not 0, one or more objects of a group that ended before
  // that reading.
  struct Waiting {
    ImplicitObject object;  // the object; if `ended` is not 0, only its kind has a meaning
    DeviceOrdinal device;   // the device whose memory the driver took for the object
    // Group and context of the record that the object gets if it has none.
    GroupId group;
    ContextId context;
    FreeBases::Version base_version = 0;  // version of the device's base before the object's call
    bool is_new = false;  // true if the call that waits is the one that made the object
    // Number of ended objects of the group for which the entry stands. 0: it stands for `object`,
    // which lives.
    std::uint64_t ended = 0;
    bool is_of(const ImplicitObject& other) const noexcept {
      return ended == 0 && object.space == other.space && object.handle == other.handle;
    }
  };

  // True if the ledger has sums of the device's implicit memory: its ordinal is from 0 to 63.
  static bool has_sums(DeviceOrdinal device) noexcept {
    return device.value >= 0 && device.value < LiveContexts::device_limit;
  }
  // Returns the bytes that the call took; 0 if it was not measured or gave memory back, or if they
  // are more than any object can take.
  static std::uint64_t bytes_taken(const ObjectCall&) noexcept;
  // True if another thread has ended the context since CurrentContext::ends was noted.
  bool has_context_ended(const CurrentContext&) const noexcept;
  // Ends the record of an object whose context `its` has ended in another thread, if that thread
  // did not find the record.
  void end_with_context(const ImplicitObject&, const CurrentContext& its) noexcept;
  // Adds a record of the object that Waiting describes. `bytes`: memory that the driver took for
  // the object. `doubt`: record_bytes_uncertain, record_bytes_shared or 0. `difference`: number of
  // the measurement that gave `bytes`, if it measured several objects together; otherwise 0.
  void add_record(const Waiting&, std::uint64_t bytes, std::uint8_t doubt,
                  std::uint16_t difference = 0) noexcept;
  // Adds bytes to the record of the object that Waiting describes, and changes the flags that say
  // how certain its bytes are. If the object has no record, makes one if `may_make` is true, and
  // otherwise drops the bytes. Does nothing if there are neither bytes nor flags to set.
  void add_bytes(const Waiting&, std::uint64_t bytes, ledger::CertaintyChange,
                 bool may_make) noexcept;
  // Looks for a sign of another process: a reading that differs from the device's exact base.
  // `begun`: the version of the base before the reading; the base is used only if it still has this
  // version.
  void look_for_neighbours(DeviceOrdinal, const driver::DeviceReading&,
                           FreeBases::Version begun) noexcept;
  // Removes those objects that wait for a reading and for which is_gone(entry) is true.
  template <class IsGone>
  void forget_waiting(IsGone is_gone) noexcept {
    if (count_.load(std::memory_order_relaxed) == 0) return;
    const Locked locked(lock_);
    if (!locked) return;
    auto* const begin = waiting_.data();
    auto* const left =
        std::remove_if(begin, begin + count_.load(std::memory_order_relaxed), is_gone);
    count_.store(static_cast<std::uint32_t>(left - begin), std::memory_order_relaxed);
  }
  // Returns bytes that a new object's record gets in addition to `taken`, the bytes that the driver
  // took for it. They are a part of the memory that the driver kept from ended objects of the kind
  // `Kind`.
  std::uint64_t share_of_kept(Kind, DeviceOrdinal, std::uint64_t taken) noexcept;
  // Returns the version of the device's base if the object may be entered in `waiting_`. The next
  // reading of the device's free memory then tells its bytes. Returns none if no base is known or
  // one was forgotten since the call began, `waiting_` has no room, or the object is in it already.
  // If a base was forgotten since the call began, also forgets the present ones, which may have
  // been read during the call. Returns none, too, if another process may hold memory of the device
  // and the base is the driver's figure (Base::by_own false).
  std::optional<FreeBases::Version> base_to_wait_on(const ObjectCall&,
                                                    const ImplicitObject&) noexcept;
  // Enters the object in `waiting_`. Does nothing if there is no room, or if the lock cannot be
  // had.
  void wait(const Waiting&) noexcept;
  // Marks the bytes in the object's record as uncertain, because no reading will tell the bytes for
  // which it waited.
  void give_up(const Waiting&) noexcept;
  // True if the program has managed memory for the device, which changes its free bytes at any
  // time.
  bool has_managed(DeviceOrdinal) const noexcept;
  // Gives the objects that wait on the device their bytes, by a reading of its free bytes, and
  // removes them. Also removes objects that can never get their bytes, since their base was
  // forgotten. `begun`: the version of the device's base from before the reading. `base`: the
  // device's base now. `by_own`: FreeBases::Base::by_own for `free_bytes`. Returns true if an
  // object, ended or not, waited on the base with the version `begun`.
  bool settle(DeviceOrdinal, const FreeBases::Base& base, std::uint64_t free_bytes, bool by_own,
              FreeBases::Version begun) noexcept;
  // True if waiting objects may have taken the bytes by which the device's free bytes are below its
  // base. That is so if one object can take as much, or if no object waits. Otherwise asks NVML: it
  // is so if NVML shows that no other process holds memory.
  bool is_plausible(DeviceOrdinal, const FreeBases::Base&, std::uint64_t free_bytes) noexcept;
  // Changes the entry in `waiting_` of an object that ends: it then stands for an ended object,
  // together with others of its group. If ends of the object's kind give memory back, removes the
  // entry instead. Returns true if the object was waiting. `group`: group of the object's record;
  // 0: the object has no record.
  bool end_waiting(const ImplicitObject&, GroupId group) noexcept;
  // Adds `bytes` to the device's sum of implicit memory of the kind; subtracts if negative.
  void book(Kind, DeviceOrdinal, std::int64_t bytes) noexcept;
  // Returns the share of their bytes that objects of this kind give back to the device at their
  // ends.
  GivenBack& given_back_of(Kind kind) noexcept {
    return given_back_[kind == Kind::stream ? 0 : kind == Kind::module ? 1 : 2];
  }
  // Ends the records of code that belongs to the object, on all devices. Returns the code's bytes
  // on the device `here`. Subtracts the code's bytes on other devices from the sums of those
  // devices.
  std::uint64_t end_code_of(const ImplicitObject&, DeviceOrdinal here) noexcept;

  ledger::Writer& ledger_;
  const LiveContexts& contexts_;
  ImplicitMemory& implicit_;
  CallSites& sites_;
  // A bit for each device that has records of code which it loaded separately.
  std::atomic<std::uint64_t> devices_with_code_{0};
  // Guards `waiting_`, whose first `count_` entries are in use, and `differences_`. Its holder may
  // change the ledger, but calls neither the driver nor the program.
  FutexLock lock_;
  std::atomic<std::uint32_t> count_{0};
  std::array<Waiting, most_waiting> waiting_{};
  // Serial number, from 1 to 65,535, of the latest difference between two readings of a device's
  // free memory that was divided among several objects (RecordFields::difference). 0: there was
  // none. Stays at 65,535, since later differences get no numbers. Guarded by `lock_`.
  std::uint32_t differences_ = 0;
  // Shares of their memory that streams, modules and executable graphs, in this order, give back at
  // their ends. The initial values were measured on an H200: the end of a module gives all of its
  // memory back; those of streams and executable graphs give nothing back.
  std::array<GivenBack, 3> given_back_{GivenBack{false}, GivenBack{true}, GivenBack{false}};
};

}  // namespace cuwarden::tracking
