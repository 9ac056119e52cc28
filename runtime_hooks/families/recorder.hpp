// Turns what families saw into facts in the ledger: adds the stack, the context, the device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/families/caller.hpp"
#include "runtime_hooks/families/captures.hpp"
#include "runtime_hooks/families/implicit_memory.hpp"
#include "runtime_hooks/families/live_contexts.hpp"
#include "runtime_hooks/families/memory_pools.hpp"
#include "runtime_hooks/families/refused_request.hpp"
#include "runtime_hooks/families/rescues.hpp"
#include "runtime_hooks/ledger/writer.hpp"
#include "runtime_hooks/pool/device_pool.hpp"
#include "runtime_hooks/pool/pinned_pool.hpp"
#include "runtime_hooks/pool/spill.hpp"
#include "runtime_hooks/rescue/ladder.hpp"
#include "runtime_hooks/rescue/pending_frees.hpp"
#include "runtime_hooks/stacks/unwinder.hpp"

namespace cuwarden::families {

// What a family knows about an allocation; the recorder finds out the rest.
struct Allocation {
  Kind kind{};
  Space space = Space::pointer;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t related = 0;
  bool owned_by_context = false;
  bool host = false;                 // host memory: belongs to no device
  bool opened = false;               // its openings are counted
  bool counts_no_bytes = false;      // a second name for memory that is recorded elsewhere
  bool in_pool = false;              // served by ours, not by the driver
  DeviceOrdinal device = no_device;  // where the family knows it; else the current one is asked
  // In stream order:
  CUstream stream = nullptr;
  CUmemoryPool memory_pool = nullptr;  // null: the device's current one
};

// Where the calling thread is: its current context and that context's device.
struct Place {
  ContextId context;
  DeviceOrdinal device = no_device;
};

class Recorder {
 public:
  // Called once for each reason for which the ledger is no longer complete, by the thread that met
  // it, with no lock held.
  using Notice = void (*)(ledger::Reason) noexcept;
  // Called twice for each place whose request was refused for lack of memory, by the thread that
  // met it, before the call returns to the program: at once, so that what is known outside CUDA may
  // be added, and when it is known what became of it.
  enum class Stage : std::uint8_t { refused, settled };
  using IncidentNotice = void (*)(IncidentId, Stage) noexcept;

  Recorder(ledger::Writer& ledger, const driver::RealDriver& real, std::size_t stack_depth,
           Notice notice, IncidentNotice incident_notice = nullptr,
           const Rescues& rescues = {}) noexcept
      : ledger_(ledger),
        real_(real),
        stack_depth_(stack_depth),
        notice_(notice),
        incident_notice_(incident_notice),
        ladder_(rescues.ladder),
        pool_use_(rescues.pool),
        shares_memory_(rescues.shares_memory),
        mesh_pause_ns_(rescues.mesh_pause_ns),
        reaches_memory_(rescues.reaches_memory),
        pool_(peers_),
        spill_(rescues.spill, peers_),
        rescue_notice_(rescues.rescue_notice),
        unwinder_(ledger.header().stacks_cut) {
    static_assert(ledger::stack_exceptions == stacks::exceptions);
  }

  ledger::Writer& ledger() noexcept { return ledger_; }
  const driver::RealDriver& real() const noexcept { return real_; }

  // Something was unloaded.
  void modules_changed() noexcept;

  // All functions here keep errno as it was.
  void allocated(const Caller&, CUresult, const Allocation&) noexcept;
  ledger::TakenRecord take(Space, std::uint64_t address) noexcept;
  // After the real free. A driver that refuses only because the process is ending has freed the
  // memory as far as the program is concerned.
  void settle(const ledger::TakenRecord&, CUresult) noexcept;

  // --- rescues (../rescue)
  bool rescues() const noexcept { return ladder_.enabled(); }
  // After the driver refused `request`, which is the program's own call once more. True: it was
  // served after all; `place` was called where that was with other memory than the driver's, which
  // is possible where it is not null. Not noexcept: a thread may be cancelled inside the driver.
  using PlaceElsewhere = FunctionRef<void(std::uint64_t address)>;
  bool rescue(const Caller&, const Allocation& asked_for, FunctionRef<CUresult()> request,
              const PlaceElsewhere* place);
  pool::Spill& spill() noexcept { return spill_; }
  pool::DevicePool& pool() noexcept { return pool_; }
  pool::PinnedPool& pinned_pool() noexcept { return pinned_; }
  // Memory other than the driver's may be in the program's hands now, or be there later.
  bool has_pools() const noexcept { return spill_.enabled() || pool_use_ != PoolUse::never; }
  // A context of it came up. Copies that name no devices reach the driver's own memory of another
  // one from there, and mapped memory only where that is granted (measured).
  void device_is_used(DeviceOrdinal device) noexcept {
    if (has_pools() && !is_used(device)) grant_for(device);
  }
  // For a request of linear memory in the current context; 0: it is the driver's to serve.
  std::uint64_t allocate_in_pool(std::uint64_t bytes) noexcept;
  // Page-locked memory with cuMemHostAlloc's flags, likewise.
  std::uint64_t allocate_in_pinned_pool(std::uint64_t bytes,
                                        std::optional<unsigned> flags) noexcept;
  // Memory of the current context that the program freed during a capture, if there is none any
  // more. Others stay until their context is current: it may be being ended where it is not.
  // Waits for that context.
  void free_deferred() noexcept {
    if (may_free_deferred()) free_deferred_now();
  }
  // The same in calls that wait for nothing themselves: where there is nothing to be waited for.
  void free_deferred_if_idle() noexcept {
    if (may_free_deferred() && is_idle_here()) free_deferred_now();
  }
  // What the pool keeps without need, of the device or of the host, goes back; false: there is
  // nothing; none: it must not now.
  std::optional<bool> empty_pool(DeviceOrdinal) noexcept;
  // After the device was waited for: page-locked memory that is free. To unlock it waits.
  void unlock_idle() noexcept;
  // The driver made a handle for other processes, or opened one.
  void shares_by_ipc() noexcept { is_shared_.store(true, std::memory_order_relaxed); }
  // The first of each.
  void tell_once(RescueNews, DeviceOrdinal, std::uint64_t bytes, std::uint64_t host_bytes) noexcept;
  // The driver gives no IPC handle of this address.
  void shared_in_vain(CUdeviceptr) noexcept;
  // A handle was made of memory of the pool, by which others reach its pages.
  void memory_is_reached() noexcept { is_reached_.store(true, std::memory_order_relaxed); }
  Captures& captures() noexcept { return captures_; }
  // The current one of a default stream.
  ContextId context_of(CUstream) const noexcept;
  // Before the driver frees memory in this stream, ends it, or ends a context.
  void freed_in(CUstream stream) noexcept {
    if (rescues() && !pending_.was_noted_last(stream))
      pending_.freed_in(stream, context_of(stream));
  }
  void stream_ends(CUstream stream) noexcept {
    if (!rescues()) return;
    pending_.stream_ends(stream);
    captures_.stream_ends(stream);
    free_deferred_if_idle();
  }
  // 0: whichever it is.
  void streams_end(ContextId context) noexcept {
    if (rescues()) pending_.context_ends(context);
  }

  // After a call that asks for something else than memory, on this device or the current one: does
  // something only where it was refused for lack of memory, or a context by the compute mode.
  void refused(const Caller&, CUresult, ledger::Asked, DeviceOrdinal = no_device) noexcept;
  // The same of a call that needed memory for itself.
  struct Needed {
    std::uint64_t bytes = 0;  // 0: nobody knows. Else another error than a lack of memory is one
    std::uint64_t given_back = 0;  // by the driver, in vain
  };
  void refused_for_itself(const Caller&, CUresult, ledger::Asked, DeviceOrdinal,
                          const Needed&) noexcept;

  GroupId group_of(const Caller&, Kind, DeviceOrdinal) noexcept;
  Place place() const noexcept;
  // The device that a device pointer lives on, whatever context is current.
  DeviceOrdinal device_of(CUdeviceptr) const noexcept;
  // Where the process sees one device only, that one: then nobody needs to be asked.
  DeviceOrdinal only_device() noexcept {
    const int count = device_count_.load(std::memory_order_relaxed);
    return (count != 0 ? count : ask_device_count()) == 1 ? DeviceOrdinal{0} : no_device;
  }

  // Handles exist that have no record on purpose: multicast objects, and what was made from those.
  void handle_without_record() noexcept { unrecorded_.store(true, std::memory_order_relaxed); }
  // The driver released a handle, or unmapped a range, that has no record. Counts only where all
  // that were made since the start have one.
  void unknown_release() noexcept;

  LiveContexts& contexts() noexcept { return contexts_; }
  MemoryPools& pools() noexcept { return pools_; }
  // What pools and graphs of this process keep for the next request.
  std::optional<std::uint64_t> idle_bytes(DeviceOrdinal device) noexcept {
    const auto idle = idle_in_pools(device);
    return idle ? std::optional(idle->unallocated) : std::nullopt;
  }
  std::optional<IdleBytes> idle_in_pools(DeviceOrdinal device) noexcept {
    return pools_.idle_bytes(real_, device, ledger_.live_bytes_on(device, Kind::graph));
  }
  ImplicitMemory& implicit() noexcept { return implicit_; }
  // By every hooked call, as it begins and as it ends.
  void call_passes() noexcept {
    if (implicit_.any_span()) disturb_spans();
  }
  // The process has to do with this device.
  void meet(DeviceOrdinal device) noexcept {
    if (device.value < 0 || device.value >= device_limit) return;
    if (!met_[device.value].load(std::memory_order_relaxed)) meet_first(device);
  }
  // A graph's node will take memory of this device.
  void graph_uses(DeviceOrdinal device) noexcept {
    pools_.used_on(device);
    meet(device);
  }
  // A context came to its end, and what it owns with it.
  void context_ended(ContextId) noexcept;
  // Before the driver ends it, and false where it has not. Also where nothing is recorded any more.
  void set_ending(ContextId context, bool is_ending) noexcept {
    pool_.set_ending(context, is_ending);
    pinned_.set_ending(context, is_ending);
  }
  void end_pools_of(ContextId) noexcept;
  // A context of this device that is alive, whatever the program did; 0: none known.
  ContextId live_context_on(DeviceOrdinal) const noexcept;
  // True where the driver does not say.
  bool primary_is_active(DeviceOrdinal) const noexcept;
  // Writes down what needs no driver: how the pools are used.
  void process_is_ending() noexcept;
  bool process_ends() const noexcept { return ending_.load(std::memory_order_relaxed); }

  // Whether a stream capture was ever begun in this process. They are not counted: a capture also
  // ends with its stream or its context, and an end may fail. Programs that never capture are not
  // slowed down; in all others the driver is asked where it matters.
  // Whether Captures::ended() is to be called where it is not begun.
  bool capture_begins(CUstream stream, bool per_thread) noexcept {
    if (!rescues()) return false;
    pending_.capture_begins();
    return captures_.begins(stream, per_thread, place().context);
  }
  void capture_began() noexcept { capture_seen_.store(true, std::memory_order_relaxed); }
  bool capture_seen() const noexcept { return capture_seen_.load(std::memory_order_relaxed); }

  // Asks the driver how full the current device is, at most every `reading_interval`.
  void read_device_now_and_then(std::uint64_t now_ns) noexcept {
    if (now_ns >= next_look_ns_.load(std::memory_order_relaxed)) look_around(now_ns);
  }
  // Takes the last readings of all devices that were seen. Ends once `may_ask`, which is called
  // before each question to the driver, is false.
  void read_devices_at_exit(const FunctionRef<bool()>& may_ask) noexcept;
  // The calling thread's stack from the function with this frame on, as Unwinder::capture() gives
  // it.
  stacks::Captured frames_from(const void* frame, std::span<std::uint64_t> into) noexcept {
    return unwinder_.capture(frame, into);
  }

 private:
  GroupId group_unguarded(const Caller&, Kind, DeviceOrdinal) noexcept;
  GroupId group_of_unknown(const Caller&, Kind, DeviceOrdinal) noexcept;
  void refused(const Caller&, const RefusedRequest&, CUresult, ledger::Asked) noexcept;
  void refused(const RefusedRequest&, GroupId, CUresult, ledger::Asked) noexcept;
  void tell(const ledger::Writer::Refused& refused, Stage stage) noexcept {
    if (refused.first && incident_notice_ != nullptr) incident_notice_(refused.incident, stage);
  }
  ledger::Writer::Refused note_refusal(const RefusedRequest&, const ledger::Refusal&) noexcept;
  // The program hears of it. What it is an incident of then.
  ledger::Writer::Refused note_failure(const ledger::Writer::Refused&, const RefusedRequest&,
                                       const ledger::Refusal&) noexcept;
  void describe(IncidentId, const RefusedRequest&, ledger::Asked) noexcept;
  void tell_of_failure(const ledger::Writer::Refused& known,
                       const ledger::Writer::Refused& failed) noexcept;
  // 0: one that there is no bit for.
  static std::uint64_t bit_of(DeviceOrdinal device) noexcept {
    return device.value >= 0 && device.value < 64 ? std::uint64_t{1} << device.value : 0;
  }
  bool is_used(DeviceOrdinal device) const noexcept {
    return (~used_.load(std::memory_order_relaxed) & bit_of(device)) == 0;
  }
  void grant_for(DeviceOrdinal) noexcept;
  void device_is_unused(DeviceOrdinal device) noexcept {
    peers_.device_ended(device);
    used_.fetch_and(~bit_of(device));
  }
  // The program has memory of a pool.
  void memory_is_out() noexcept;
  template <class Allocate>
  std::uint64_t allocate_here(const Allocate&) noexcept;
  bool has_pool_for(DeviceOrdinal device) const noexcept {
    return device == no_device ? pinned_.any() : pool_.any();
  }
  bool all_are_idle(ContextId current) noexcept;
  bool may_mesh() const noexcept;
  std::optional<RescueNews> obstacle_met() noexcept;
  std::optional<RescueNews> mesh_obstacle() noexcept;
  // For a request of so many bytes. `served`: some went back to the device.
  rescue::RungOutcome mesh_pool(const Place&, std::uint64_t wanted_bytes) noexcept;
  // The device was read, or something went wrong there.
  void note_pool(DeviceOrdinal) noexcept;
  void note_pinned() noexcept;
  void look_after_pool(DeviceOrdinal, std::uint64_t total_bytes) noexcept;
  rescue::RungOutcome spill_to_host(const Allocation&, const Place&, DeviceOrdinal,
                                    FunctionRef<CUresult()> request, const PlaceElsewhere&);
  // A copy of what is asked for, where the host's memory may stand in for it.
  std::optional<pool::Range> spillable(const Allocation&, const Place&, DeviceOrdinal) noexcept;
  // Of the calling thread, as deep as can be.
  StackId whole_stack(const Caller&) noexcept;  // 0: not all of it is known
  bool may_free_deferred() noexcept {
    return (spill_.has_deferred() || pool_.deferred().any() || pinned_.deferred().any()) &&
           !captures_.any();
  }
  bool is_idle_here() noexcept;
  void free_deferred_now() noexcept;
  rescue::Situation situation(const RefusedRequest&, GroupId, IncidentId) noexcept;
  void note_device(IncidentId, DeviceOrdinal) noexcept;
  void note_compute_mode(IncidentId, DeviceOrdinal) noexcept;
  int compute_mode(DeviceOrdinal) const noexcept;
  bool compute_mode_refuses(CUresult, DeviceOrdinal) const noexcept;
  void served(const RefusedRequest&) noexcept;
  static std::uint32_t next_serial() noexcept;
  // For callers that keep errno themselves.
  Place place_unguarded() const noexcept;
  Place place_that_served() noexcept;
  void read_device(DeviceOrdinal, ledger::ReadingAt) noexcept;
  void look_around(std::uint64_t now_ns) noexcept;
  void disturb_spans() noexcept;
  void meet_first(DeviceOrdinal) noexcept;
  int ask_device_count() noexcept;
  void give_notice() noexcept {
    const std::uint32_t reasons = ledger_.header().reasons.load(std::memory_order_relaxed);
    if ((reasons & noteworthy & ~noticed_.load(std::memory_order_relaxed)) != 0)
      give_notice_of(reasons & noteworthy);
  }
  void give_notice_of(std::uint32_t reasons) noexcept;
  void unknown_free() noexcept;

  static constexpr std::int32_t device_limit = LiveContexts::device_limit;
  static constexpr std::uint32_t noteworthy =
      ledger::reason_ledger_full | ledger::reason_recording_stopped;

  ledger::Writer& ledger_;
  const driver::RealDriver& real_;
  std::size_t stack_depth_;
  Notice notice_;
  IncidentNotice incident_notice_;
  rescue::Ladder ladder_;
  rescue::PendingFrees pending_;
  const PoolUse pool_use_;
  bool (*const shares_memory_)() noexcept;
  const std::uint64_t mesh_pause_ns_;
  bool (*const reaches_memory_)() noexcept;
  std::atomic<std::uint64_t> mesh_not_before_ns_{0};
  std::atomic<bool> is_reached_{false};
  std::atomic<bool> is_shared_{false};
  std::atomic<std::uint64_t> pool_on_{0};  // a bit for each device
  std::atomic<std::uint64_t> used_{0};     // a bit for each device with a context
  // Of two of them, one cannot reach the other's mapped memory.
  std::atomic<bool> are_apart_{false};
  pool::Peers peers_;
  pool::DevicePool pool_;
  pool::PinnedPool pinned_;
  pool::Spill spill_;
  decltype(Rescues::rescue_notice) rescue_notice_;
  std::atomic<std::uint32_t> told_{0};  // a bit for each RescueNews
  Captures captures_;
  const std::uint32_t serial_ = next_serial();
  std::atomic<bool> was_refused_{false};   // some request
  std::atomic<std::uint32_t> noticed_{0};  // Reason bits
  stacks::Unwinder unwinder_;
  std::atomic<bool> ending_{false};
  std::atomic<bool> capture_seen_{false};
  std::atomic<bool> unrecorded_{false};
  std::atomic<std::uint64_t> next_look_ns_{0};  // the earlier of the two
  std::atomic<std::uint64_t> next_reading_ns_{0};
  std::atomic<std::uint64_t> next_rss_ns_{0};
  std::atomic<int> device_count_{0};  // 0: has not been asked for
  LiveContexts contexts_;
  MemoryPools pools_;
  ImplicitMemory implicit_;
  std::atomic<bool> met_[device_limit]{};
};

}  // namespace cuwarden::families
