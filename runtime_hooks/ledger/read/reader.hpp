// Reads a ledger: the process's own at exit, a live one, or one left behind by a dead process.
// The bytes are untrusted: every offset, count and length is checked, a half-written row is
// skipped, and nothing is allocated in proportion to a number that the file claims.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/implicit_bytes.hpp"
#include "runtime_hooks/ledger/format/incident_facts.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

// The views below are copies of the ledger's rows, each read at one moment. A field without a
// comment has the meaning of the field of that name in layout.hpp. Texts point into the ledger.
struct RecordView {
  RecordId id;
  GroupId group;
  DeviceAddress address;
  ByteCount bytes;
  std::uint64_t time_ns = 0;
  ContextId context;
  std::uint64_t related = 0;
  ThreadId thread;
  std::uint32_t mappings = 0, references = 0;
  Space space{};
  std::uint8_t flags = 0;
};
struct GroupView {
  GroupId id;
  StackId stack;
  HookId api;
  Kind kind{};
  DeviceOrdinal device = no_device;
  std::uint64_t live_count = 0, live_bytes = 0, allocations = 0, allocated_bytes = 0, frees = 0,
                failures = 0, released_count = 0, released_bytes = 0, first_ns = 0, last_ns = 0,
                at_peak_count = 0, at_peak_bytes = 0;
};
struct StackView {
  StackId id;
  std::span<const Frame> frames;  // points into the ledger
  std::uint64_t module_epoch = 0;
  bool truncated = false;
};
struct ModuleView {
  ModuleId id;
  ModuleId file;  // id of the first module of this file
  std::string_view path;
  std::span<const std::uint8_t> build_id;
  std::uint64_t base = 0, start = 0, end = 0, loaded_epoch = 0, unloaded_epoch = 0;
};
struct ThreadView {
  ThreadId id;
  std::uint32_t tid = 0;
  std::string_view name;
  std::uint64_t first_ns = 0;
};
struct BucketView {
  std::uint64_t time_ns = 0, width_ns = 0, max_bytes = 0, last_bytes = 0;
};
struct WorstHolderView {
  GroupId group;
  std::uint64_t count = 0, bytes = 0, locked_bytes = 0;
};
struct SeriesView {
  bool host_rss = false;
  Kind kind{};
  DeviceOrdinal device = no_device;
  std::uint64_t allocations = 0, frees = 0, failures = 0, live_count = 0, live_bytes = 0,
                peak_count = 0, peak_bytes = 0, peak_ns = 0;
  // The worst moment of linear memory, at which slabs locked the most bytes; and the moment at
  // which its holders were copied.
  struct Worst {
    std::uint32_t version = 0;  // 0: no memory lay in slabs
    bool all_counted = true;
    // false: the driver's slabs are laid out in another way than slab_layout.hpp assumes
    bool as_counted = true;
    std::uint64_t locked_bytes = 0, page_rounding_bytes = 0, time_ns = 0;
    // Number of pieces that shared a page with another one, as slabs assume; 0: none was seen.
    std::uint64_t pieces_seen = 0;
    // The device's last reading before that moment, taken at `read_ns`; 0: none.
    std::uint64_t read_ns = 0, read_free_bytes = 0;
    std::optional<std::uint64_t> read_memory_pool_idle_bytes;
    std::uint64_t holders_ns = 0, holders_locked_bytes = 0;
    // in use up to the first entry without a group
    std::array<WorstHolderView, worst_holder_count> holders{};
  } worst;
  std::size_t buckets_used = 0;
  BucketView buckets[bucket_count];
};
struct SlabPageView {
  DeviceOrdinal device = no_device;
  DeviceAddress address;
  SlabContents contents;
};
// The pool's figures on a device, like ArenaUse in writer.hpp.
struct ArenaView {
  std::uint64_t held_bytes = 0, live_bytes = 0;
  std::uint64_t served_count = 0, served_bytes = 0, returned_bytes = 0;
  std::uint64_t meshed_pages = 0, meshed_bytes = 0, pause_ns = 0;
  // Returns the held bytes that no allocation has; 0 for the impossible numbers of a damaged
  // ledger.
  std::uint64_t unused_bytes() const { return held_bytes - std::min(held_bytes, live_bytes); }
};

struct DeviceView {
  DeviceOrdinal ordinal = no_device;
  std::uint8_t uuid[16]{};
  std::string_view name;
  ReadingAt at = ReadingAt::none;
  std::uint64_t time_ns = 0, total_bytes = 0, free_bytes = 0;
  std::optional<std::uint64_t> memory_pool_idle_bytes;
  std::uint64_t other_processes_bytes = 0;  // 0: unknown
  // Host memory behind allocations on the device, in bytes, and the number of such allocations.
  std::uint64_t spilled_bytes = 0, spilled_peak_bytes = 0, spilled_count = 0;
  std::uint64_t spilled_in_stream_order_bytes = 0;  // of spilled_bytes
  ArenaView arena;
  ImplicitBytes implicit;
  std::string_view largest_local_kernel;
};
struct IncidentView : IncidentFacts {
  IncidentId id;
  GroupId group;
  ThreadId thread;
  std::uint64_t time_ns = 0;
  std::uint64_t repeats = 0, last_ns = 0, last_bytes = 0, recovered = 0, failed = 0;
  std::array<std::uint64_t, rung_count> rescued{};
  std::uint64_t rescued_bytes = 0;
};
struct IncidentHolderView : IncidentHolding {
  IncidentId incident;
};
struct IncidentClassView {
  IncidentId incident;
  std::uint64_t class_bytes = 0, slab_count = 0, live_count = 0, live_bytes = 0;
};
struct IncidentRungView {
  IncidentId incident;
  std::uint32_t order = 0;
  Rung rung{};
  RungOutcome outcome{};
  std::uint64_t duration_ns = 0;
  std::string_view name;  // the reclaimer's name; points into the ledger
};
struct IncidentSlabView {
  IncidentId incident;
  DeviceAddress address;
  std::uint64_t live_count = 0, live_bytes = 0;
};
struct HookView {
  HookId id;
  std::string_view name;
  std::uint64_t calls = 0;
};
struct NamedCountView {
  std::string_view name;
  std::uint64_t count = 0;
};
struct NamedValueView {
  std::string_view name, value;
  bool from_environment = false;
};
struct ProcessView {
  std::uint32_t pid = 0, parent = 0;
  std::int64_t start_realtime_ns = 0;
  std::uint64_t start_monotonic_ns = 0, start_ticks = 0;
  std::uint32_t pid_namespace = 0;  // 0: unknown
  bool lock_held = false;           // the process keeps the file locked while it lives
  std::uint64_t file_device = 0,
                file_inode = 0;  // those of the file that the process made; 0: none
  std::span<const std::uint8_t> boot_id;
  std::string_view memory_cgroup;
  // as they were when the ledger was made
  std::uint64_t memory_cgroup_inode = 0, memory_cgroup_oom_kills = 0;
  std::string_view host, program, command_line, report_path;  // command_line: zero-separated
  EndReason end_reason = EndReason::unknown;
  bool report_written = false;  // true if the report of that end is on disk
  // The number in the name of the process's report; 0: the name has none; null: no report.
  std::optional<unsigned> report_number;
  std::optional<int> exit_status;
  int driver_version = 0, runtime_version = 0;
  bool cuda_seen = false;
  std::uint32_t reasons = 0;                                 // Reason bits
  GrowthOperation growth_operation = GrowthOperation::none;  // operation that the kernel refused
  int growth_error = 0;                                      // its errno
  std::array<std::uint64_t, stack_exceptions> stacks_cut{};
  std::uint64_t recorded_calls = 0, shim_ns = 0, unknown_frees = 0, superseded = 0;
  std::uint64_t pinned_served_count = 0, pinned_served_bytes = 0, pinned_held_bytes = 0;
  std::uint64_t ledger_bytes = 0;  // used, not reserved
  bool cut_short = false;          // the file is smaller than it was made
};

// The reason why a ledger cannot be read, as a text for people.
struct ReadError {
  const char* text = nullptr;
  explicit operator bool() const { return text != nullptr; }
};

class Reader {
 public:
  // Makes a reader of a ledger's bytes; none, with the error set, if the header is not that of a
  // readable ledger. The bytes must outlive the reader, and may change while they are read.
  static std::optional<Reader> open(std::span<const std::byte>, ReadError&) noexcept;

  ProcessView process() const noexcept;

  // Returns the number of rows of a table, row 0 included, which is an upper bound. The functions
  // below return a row, or none if the row is unused or damaged. Rows count from 1.
  std::uint64_t rows(RegionId) const noexcept;
  std::optional<RecordView> record(std::uint64_t row) const noexcept;
  std::optional<GroupView> group(std::uint64_t row) const noexcept;
  std::optional<StackView> stack(std::uint64_t row) const noexcept;
  std::optional<ModuleView> module(std::uint64_t row) const noexcept;
  std::optional<ThreadView> thread(std::uint64_t row) const noexcept;
  // Returns a series without the counts that only its groups have, and with live bytes that may be
  // too high; GroupSums completes it.
  std::optional<SeriesView> series(std::uint64_t row) const noexcept;
  std::optional<DeviceView> device(std::uint64_t row) const noexcept;
  std::optional<IncidentView> incident(std::uint64_t row) const noexcept;
  std::optional<IncidentHolderView> incident_holder(std::uint64_t row) const noexcept;
  std::optional<IncidentClassView> incident_class(std::uint64_t row) const noexcept;
  std::optional<IncidentSlabView> incident_slab(std::uint64_t row) const noexcept;
  std::optional<IncidentRungView> incident_rung(std::uint64_t row) const noexcept;
  // Returns the page's contents at its device's worst moment. `version`: that moment's version.
  std::optional<SlabPageView> slab_page(std::uint64_t row, std::uint32_t version) const noexcept;
  std::optional<HookView> hook(std::uint64_t row) const noexcept;  // rows count from 0
  std::optional<NamedCountView> unhooked_lookup(std::uint64_t row) const noexcept;
  std::optional<NamedValueView> setting(std::uint64_t row) const noexcept;
  std::optional<NamedValueView> environment(std::uint64_t row) const noexcept;

  // Returns the module that was mapped at this address in that epoch; none if none is known.
  std::optional<ModuleView> module_at(Frame, std::uint64_t module_epoch) const noexcept;

 private:
  // The position of a table within the bytes. It is checked once and kept, since the header may
  // change.
  struct Table {
    std::uint64_t offset = 0, rows = 0;
  };
  explicit Reader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
  const Header& header() const noexcept;
  template <class Row>
  const Row* row(RegionId, std::uint64_t index) const noexcept;
  template <class Row>
  const Row* published(RegionId, std::uint64_t index) const noexcept;
  std::string_view text(const StringRef&, std::uint64_t longest) const noexcept;
  std::uint64_t calls_of(std::uint64_t hook) const noexcept;
  std::optional<NamedValueView> named_value(RegionId, std::uint64_t index) const noexcept;
  SeriesView::Worst worst_of(const Series&) const noexcept;

  std::span<const std::byte> bytes_;
  bool own_process_ = false;  // true: parts that are in memory only can be read, too
  std::array<Table, region_count> tables_{};
};

}  // namespace cuwarden::ledger
