// Records facts in the ledger. Every function is noexcept, takes no global lock, calls no malloc,
// and may be called from any thread at any time between create() and the end of the process.
// What cannot be stored is counted and said in Header::reasons; nothing ever fails loudly.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/core/thread_slot.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

struct GroupKey {
  StackId stack;
  HookId api;
  Kind kind{};
  DeviceOrdinal device = no_device;  // no_device for host memory
  bool operator==(const GroupKey&) const = default;
};

// What a record holds besides its key and its state.
struct RecordFields {
  GroupId group;
  ByteCount bytes;
  std::uint64_t time_ns = 0;  // of the allocation, since process start
  ContextId context;
  std::uint64_t related = 0;
  ThreadId thread;
  std::uint32_t references = 0;  // 1: opened, and may be opened again under the same address
  std::uint8_t flags = 0;        // RecordFlag
};

// The writer sets the thread, and the time where it is 0.
struct NewRecord : RecordFields {
  Space space{};
  DeviceAddress address;
};

// A record taken out before the driver's free is called; hand it back when the driver refuses.
struct TakenRecord {
  Space space{};
  DeviceAddress address;
  RecordFields fields;  // group 0: the address was not recorded
  std::uint64_t taken_ns = 0;
  explicit operator bool() const { return fields.group.value != 0; }
};

// What a device said of itself.
struct Reading {
  ReadingAt at = ReadingAt::none;
  std::uint64_t total_bytes = 0, free_bytes = 0;
  std::optional<std::uint64_t> memory_pool_idle_bytes;  // of this process
};

// What the pool that serves requests in the driver's stead has of a device, what of that was asked
// for and is live, and what it served and gave back ever; of that, by having so many pages share
// memory, and how long the program was paused for it.
struct ArenaUse {
  std::uint64_t held_bytes = 0, live_bytes = 0;
  std::uint64_t served_count = 0, served_bytes = 0, returned_bytes = 0;
  std::uint64_t meshed_pages = 0, meshed_bytes = 0, pause_ns = 0;
};

// What a call took from a device, or gave back, without having been asked for memory. Differences:
// no number of the device falls below 0.
struct ImplicitChange {
  bool contexts_ended = false;  // all of the device: first of all, everything is 0 again
  std::uint64_t used_after_first_context_bytes = 0;  // 0: leaves it as it is
  std::int64_t context_bytes = 0, module_bytes = 0, local_memory_bytes = 0, heap_bytes = 0,
               stream_bytes = 0;
  // Given back by nobody knows which: from local memory, then code, then the contexts.
  std::uint64_t given_back_bytes = 0;
  // Taken again of what contexts gave back; at most lent_context_bytes().
  std::uint64_t taken_again_bytes = 0;
  // Given back by the end of one of several contexts: from what further ones took, then from what
  // was made inside them.
  std::uint64_t one_ended_bytes = 0;
  // A kernel that needs more local memory a thread than any before; 0: there is none.
  std::uint64_t largest_local_bytes = 0;
  std::string_view largest_local_kernel{};  // empty: its name is not known
};

struct Creation {
  // Folders to try in order; the first on a local file system that works is used. None: memory.
  std::span<const char* const> folders;
  std::span<const std::string_view> hook_names;  // row i+0 of the hooks table is hook i
  std::string_view report_path;                  // absolute, expanded
  std::uint64_t largest_file_bytes = 0;          // 0: no bound but the process's own limits
  std::int32_t pid = 0;                          // of the process that is recorded; 0: the caller
  bool without_populate = false;                 // fill the file as on kernels before Linux 5.14
};

// A request that was refused for lack of memory.
struct Refusal {
  GroupId group;  // of where it was made
  Asked asked = Asked::memory;
  std::int32_t result = 0;  // CUresult
  ByteCount bytes;          // 0: the call does not say
};

class Writer {
 public:
  // Makes and maps the file, or goes on in anonymous memory (reason_ledger_in_memory). Returns
  // null only when not even that can be had. The object lives in memory of its own and is never
  // destroyed. After a fork the child must not touch it: the mapping is not inherited.
  static Writer* create(const Creation&) noexcept;

  // The file's path; empty when the ledger is in memory only or was removed.
  std::string_view path() const noexcept;
  // Removes the file's name (the report is whole). The mapping stays usable.
  void remove_file() noexcept;
  // The whole mapping, for a reader in this process. Includes what lies in memory only.
  // Rows that were not handed out may be without access.
  std::span<const std::byte> bytes() const noexcept;

  std::uint64_t now_ns() const noexcept;  // since process start
  // The same as of the kernel's last tick, some milliseconds ago at most, in a quarter of the time.
  std::uint64_t recently_ns() const noexcept;

  // Frames are normalised addresses, innermost first. Equal stacks get equal ids. `added`: whether
  // this one was not there before.
  StackId intern_stack(std::span<const Frame> frames, bool truncated,
                       bool* added = nullptr) noexcept;
  GroupId group(const GroupKey&) noexcept;
  DeviceOrdinal device_of(GroupId) const noexcept;
  // The group with the stack that `known` has.
  GroupId group_of_stack_in(GroupId known, HookId, Kind, DeviceOrdinal) noexcept;
  // After a dlclose: finds modules that went away, ends their rows and retires their stacks. A
  // StackId or GroupId that the caller keeps for such a stack must not be used for new records.
  void modules_changed() noexcept;

  // --- allocations
  void add(NewRecord&) noexcept;  // sets them in the caller's: a copy costs too much here
  void add(NewRecord&& given) noexcept { add(given); }
  // Before the driver's free. The totals drop at once.
  TakenRecord take(Space, DeviceAddress) noexcept;
  void put_back(const TakenRecord&) noexcept;  // the driver refused
  // What is opened again is still one allocation; it goes with the last close. False: no such
  // record is open; for a close, it is the last one, and to be taken.
  bool opened_again(Space, DeviceAddress) noexcept;
  bool closed_not_last(Space, DeviceAddress) noexcept;
  void count_unknown_free() noexcept;
  // Counts it. `first`: no other came from there; the facts of the moment are to be set, then it is
  // published. 0: it could not be stored.
  struct Refused {
    IncidentId incident;
    bool first = false;
    // When it was, and the incident's last one before it.
    std::uint64_t time_ns = 0, last_ns = 0, last_bytes = 0;
  };
  Refused refused(const Refusal&) noexcept;
  // It is refused to the program, too. The incident that it is counted with from now on, which
  // `first` says is another one and not published yet, where the one before is of requests that
  // were served after all.
  Refused failed(const Refused&, const Refusal&) noexcept;
  // May also be set after it was published.
  void set_fact(IncidentId, Fact, std::uint64_t) noexcept;
  // With what is live now, and with those who hold most of it.
  void publish_incident(IncidentId) noexcept;
  // Another process that holds memory of the device; unknown_bytes: how much is not known.
  void add_process(IncidentId, std::uint32_t pid, std::uint64_t bytes) noexcept;
  // Of a row of the incident holders: what it holds grows.
  void set_growth(std::uint64_t holder, std::uint64_t bytes_per_minute) noexcept;
  // What its pieces lock in slabs. One that is not among the holders yet is added.
  struct SlabShare {
    GroupId group;
    std::uint64_t live_count = 0, live_bytes = 0;  // of the group, in slabs or not
    std::uint64_t locked_bytes = 0;
  };
  void add_slab_share(IncidentId, const SlabShare&) noexcept;
  struct SlabClassRow {
    std::uint64_t class_bytes = 0, slab_count = 0, live_count = 0, live_bytes = 0;
  };
  void add_slab_class(IncidentId, const SlabClassRow&) noexcept;
  // All slabs of the device; once.
  struct SlabRow {
    DeviceAddress address;
    std::uint64_t live_count = 0, live_bytes = 0;
  };
  void add_slabs(IncidentId, std::span<const SlabRow>) noexcept;
  // The thread that met it so often has had the same request served.
  void recovered(IncidentId, std::uint32_t times) noexcept;
  // What was tried at the incident's first refusal.
  struct RungRow {
    std::uint32_t order = 0;  // from 1
    Rung rung{};
    RungOutcome outcome{};
    std::uint64_t duration_ns = 0;
    std::string_view name;  // of the reclaimer
  };
  void add_rung(IncidentId, const RungRow&) noexcept;
  // The refused request was served after all.
  void rescued(IncidentId, Rung, ByteCount) noexcept;
  // Everything that goes with this context: moved to the groups' released_* counts.
  void release_context(ContextId) noexcept;

  // --- virtual memory. A handle's bytes are live until its references and mappings are both gone.
  void handle_created(NewRecord) noexcept;              // references = 1
  void handle_retained(DeviceAddress handle) noexcept;  // one more reference
  // A handle made from an address (cuMemRetainAllocationHandle): its value may be new. False: no
  // mapping is known there, and the handle is not recorded.
  bool handle_retained_from_mapping(DeviceAddress mapped, DeviceAddress handle) noexcept;
  bool handle_release_begin(DeviceAddress handle) noexcept;  // before the driver's release
  void handle_release_undo(DeviceAddress handle) noexcept;   // it refused
  void mapped(DeviceAddress, ByteCount, DeviceAddress handle, GroupId) noexcept;
  // Before the driver's unmap of [address, address + bytes); undo restores exactly those. False:
  // no mapping is known there.
  bool unmap_begin(DeviceAddress, ByteCount) noexcept;
  void unmap_undo(DeviceAddress, ByteCount) noexcept;

  // --- everything else
  ThreadId thread() noexcept;  // the calling thread's row
  // That row if the thread has one already, 0 otherwise; and how many rows there are.
  std::uint64_t known_thread_row() const noexcept;
  std::uint64_t thread_rows() const noexcept;
  // Lets each table take as much again as it holds without a question to the kernel.
  void make_room_ahead() noexcept;
  ThreadSlot thread_slot() noexcept;
  void count_call(HookId) noexcept;
  void count_unhooked_lookup(std::string_view name) noexcept;
  std::uint64_t unhooked_lookups() noexcept;  // different ones
  void set_setting(std::string_view name, std::string_view value, bool from_environment) noexcept;
  void set_environment(std::string_view name, std::string_view value) noexcept;
  void set_device(DeviceOrdinal, std::string_view name, const std::uint8_t (&uuid)[16]) noexcept;
  void read_device(DeviceOrdinal, const Reading&) noexcept;
  void set_other_processes(DeviceOrdinal, ByteCount) noexcept;
  // An allocation on this device lies in the host's memory with that many bytes; and no more.
  void spilled(DeviceOrdinal, Kind, ByteCount) noexcept;
  void unspilled(DeviceOrdinal, Kind, ByteCount) noexcept;
  std::uint64_t spilled_bytes_on(DeviceOrdinal) noexcept;
  std::uint64_t spilled_in_stream_order_on(DeviceOrdinal) noexcept;  // of those
  // What the pool that serves requests in the driver's stead has on the device now.
  void set_arena(DeviceOrdinal, const ArenaUse&) noexcept;
  // Of linear memory on the device, what the driver's slabs lock; threads tell with some delay.
  std::uint64_t slab_locked_bytes_on(DeviceOrdinal) noexcept;
  void change_implicit(DeviceOrdinal, const ImplicitChange&) noexcept;
  // What contexts of the device gave back that no launch has taken again.
  std::uint64_t lent_context_bytes(DeviceOrdinal) noexcept;
  // What is live of the memory that its account counts, or of one kind, as the series have it.
  std::uint64_t live_bytes_on(DeviceOrdinal, std::optional<Kind> only = std::nullopt) noexcept;
  void sample_host_rss(ByteCount) noexcept;
  void set_versions(int driver, int runtime) noexcept;  // 0 leaves one as it is
  void set_end(EndReason, int exit_status, bool status_known) noexcept;
  void add_reason(Reason) noexcept;
  void add_shim_time(std::uint64_t ns) noexcept;
  Header& header() noexcept;

 private:
  struct State;
  explicit Writer(State& state) noexcept : state_(state) {}
  State& state_;
};

}  // namespace cuwarden::ledger
