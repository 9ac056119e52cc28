// The rows of a ledger as its readers see them: values, copied from the untrusted bytes.
#pragma once

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
#include "runtime_hooks/ledger/format/longest_life.hpp"
#include "runtime_hooks/ledger/format/reach.hpp"
#include "runtime_hooks/ledger/format/record_fields.hpp"

namespace cuwarden::ledger {

// The structs called ...View are copies of the ledger's rows, each read at one moment. Texts and
// spans point into the ledger's bytes. Times are nanoseconds since the recorded process began.

// A copy of a Record: one live allocation.
struct RecordView : RecordFields {
  RecordId id;            // the record's row in the records table
  DeviceAddress address;  // address or handle
  // Number of live mappings and further handles of a virtual memory handle's memory; 0 for other
  // memory.
  std::uint32_t mappings = 0;
  Space space{};  // kind of number that `address` is, such as a pointer or a handle
  Reach reach{};  // result of a search for pointers to the allocation
};
// A copy of a Group: all allocations of one kind, by one CUDA function, on one device, from one
// call stack. The counters are summed up over all threads.
struct GroupView {
  GroupId id;     // the group's row in the groups table
  StackId stack;  // call stack of the allocations; 0: none was recorded
  // The CUDA function that the program called; no_function for blocks of frameworks.
  HookId api;
  Kind kind{};                       // kind of the allocated memory
  DeviceOrdinal device = no_device;  // no_device for host memory
  // Number and bytes of the allocations that neither a free nor the end of their context has ended.
  std::uint64_t live_count = 0, live_bytes = 0;
  // Number and bytes of all allocations since process start.
  std::uint64_t allocations = 0, allocated_bytes = 0;
  std::uint64_t frees = 0;   // allocations that the program has freed since process start
  LongestLife longest_life;  // longest life of the allocations that the program has freed
  // Refused requests for memory or a graph that failed since process start.
  std::uint64_t failures = 0;
  // Number and bytes of the allocations that ended with their context, not by a free.
  std::uint64_t released_count = 0, released_bytes = 0;
  std::uint64_t first_ns = 0;  // time of the first allocation since process start; 0: none
  std::uint64_t last_ns = 0;   // time of the last allocation since process start; 0: none
  // Number and bytes of the group's live allocations when the live bytes of this kind on this
  // device were highest, or up to 1 % lower.
  std::uint64_t at_peak_count = 0, at_peak_bytes = 0;
};
// A copy of a Stack: one call stack.
struct StackView {
  StackId id;                      // the stack's row in the stacks table
  std::span<const Frame> frames;   // innermost first; points into the ledger
  std::uint64_t module_epoch = 0;  // number of modules unloaded before the stack was stored
  bool truncated = false;          // true if outer frames were cut off
};
// A copy of a PythonCode: a Python function. The texts point into the ledger.
struct PythonCodeView {
  std::string_view file;           // path of the source file; empty: unknown
  std::string_view function;       // name of the Python function; empty: unknown
  std::uint32_t first_line = 0;    // line of `file` with which the function begins
  std::string_view lines;          // bytes by which Python maps instructions to lines
  std::uint32_t lines_format = 0;  // format of `lines`: PythonCode::lines_format
};
// A copy of a Module: a loaded object (the program or a shared library) at one address.
struct ModuleView {
  ModuleId id;                             // the module's row in the modules table
  ModuleId file;                           // first module that was loaded from this module's file
  std::string_view path;                   // path of the module's file; empty: unknown
  std::span<const std::uint8_t> build_id;  // the linker's id of the module's file; empty: none
  // Load base: an address less the base is the address in the tables of the module's file.
  std::uint64_t base = 0;
  std::uint64_t start = 0, end = 0;  // mapped range of addresses; `end` is exclusive
  // Number of modules unloaded before this row was made; the module was loaded by then.
  std::uint64_t loaded_epoch = 0;
  // Number of modules unloaded up to and including this one; 0: it is still loaded.
  std::uint64_t unloaded_epoch = 0;
};
// A copy of a RequestUnderWay: a thread's refused request while an attempt (rung) to serve it runs.
struct RequestUnderWayView {
  IncidentId incident;         // the incident that counts the refusal
  Rung rung{};                 // the rung (attempt to serve the request) that is being tried
  std::uint64_t since_ns = 0;  // time of the rung's start, since process start
  std::uint64_t bytes = 0;     // size of the request; 0: unknown
};
// A copy of a Thread: a thread of the recorded process that made a recorded call.
struct ThreadView {
  ThreadId id;                 // the thread's row in the threads table
  std::uint32_t tid = 0;       // the kernel's id of the thread
  std::string_view name;       // name that the thread had at its first recorded call
  std::uint64_t first_ns = 0;  // time of the thread's first recorded call, since process start
  std::optional<RequestUnderWayView> under_way{};  // null: no rung is being tried for the thread
};
// A copy of a Bucket: the live bytes in a span of a series' timeline.
struct BucketView {
  std::uint64_t time_ns = 0;     // start of the bucket's span of time, since process start
  std::uint64_t width_ns = 0;    // length of the bucket's span of time
  std::uint64_t max_bytes = 0;   // highest live bytes of the series in the bucket's span
  std::uint64_t last_bytes = 0;  // live bytes of the series at the end of the bucket's span
};
// A copy of a WorstHolder: one group's live allocations in the driver's slabs at a moment with many
// locked bytes (unused, but in slabs with a live allocation).
struct WorstHolderView {
  GroupId group;  // group that locked the bytes; 0: the entry is unused
  // Number and requested bytes of the group's live allocations in slabs.
  std::uint64_t count = 0, bytes = 0;
  // The group's part of all bytes locked in slabs of the device. A slab's locked bytes are divided
  // equally among its live allocations.
  std::uint64_t locked_bytes = 0;
};
// The memory of one kind on one device, summed up over its groups.
struct SeriesTotals {
  std::uint64_t allocations = 0;      // allocations since process start
  std::uint64_t allocated_bytes = 0;  // bytes of the allocations since process start
  std::uint64_t frees = 0;            // allocations that the program has freed since process start
  // Refused requests for memory or a graph that failed since process start.
  std::uint64_t failures = 0;
  std::uint64_t live_count = 0;  // number of live allocations
  std::uint64_t live_bytes = 0;  // bytes of the live allocations
};
// A copy of a Series: all memory of one kind on one device, or the process's resident memory. The
// totals are 0, except for `live_bytes`, which may be too high, until GroupSums::put_into() adds up
// the groups. For `host_rss`, `live_bytes` is the last sample of the RSS, and the others stay 0.
struct SeriesView : SeriesTotals {
  bool host_rss = false;             // true: the bytes are the process's resident memory (RSS)
  Kind kind{};                       // kind of memory; meaningless if `host_rss` is true
  DeviceOrdinal device = no_device;  // no_device for host memory
  // Bytes now locked in slabs or lost to rounding up to pages. `live_bytes` does not include them.
  std::uint64_t beside_live_bytes = 0;
  // Number of live allocations at the moment of `peak_bytes`; 0 for `host_rss`.
  std::uint64_t peak_count = 0;
  std::uint64_t peak_bytes = 0;  // highest live bytes so far
  std::uint64_t peak_ns = 0;     // time of the moment of `peak_bytes`, since process start
  // The worst moment of a device's linear memory: that at which the most bytes were locked. Locked
  // bytes are unused, but in slabs of the driver that have a live allocation.
  struct Worst {
    // Number of moments so far at which more bytes were locked than ever before; 0: no bytes were
    // ever locked.
    std::uint32_t version = 0;
    bool all_counted = true;  // false: there was no room for some slabs, which do not count
    // False if many allocations contradicted the layout of slabs in slab_layout.hpp when `holders`,
    // the groups with most locked bytes, was last filled. The struct's numbers may then be wrong.
    bool as_counted = true;
    std::uint64_t locked_bytes = 0;  // the most bytes that were ever locked at one moment
    // Bytes lost to rounding up to 2 MiB pages at the moment with the most locked bytes.
    std::uint64_t page_rounding_bytes = 0;
    // Time of the moment with the most locked bytes, since process start; 0: none were ever locked.
    std::uint64_t time_ns = 0;
    // Number of allocations that shared a slab with others at `holders_ns`, when `holders` was last
    // filled. 0 although `holders_ns` is not 0: the driver may not cut slabs as slab_layout.hpp
    // assumes.
    std::uint64_t pieces_seen = 0;
    // The last reading of the device's memory before `holders` was last filled. `read_ns`: the
    // reading's time since process start; 0: there was none, or `holders` was being replaced.
    // `read_free_bytes`: free bytes of the device; without meaning if `read_ns` is 0.
    std::uint64_t read_ns = 0, read_free_bytes = 0;
    // Unused bytes of memory pools (CUmemoryPool) at `read_ns`, the last reading before `holders`
    // was filled; null: unknown.
    std::optional<std::uint64_t> read_memory_pool_idle_bytes;
    // Time since process start at which `holders`, the groups with most locked bytes, was last
    // filled, and all bytes locked then. The time is `time_ns`, or an earlier one at which fewer
    // bytes were locked. 0: never filled.
    std::uint64_t holders_ns = 0, holders_locked_bytes = 0;
    // The groups that locked the most bytes at the time `holders_ns`, in descending order. Locked
    // bytes are unused, but lie in slabs of the driver that have a live allocation. The first entry
    // whose group is 0 ends the list. All entries are 0 while the list is being replaced.
    std::array<WorstHolderView, worst_holder_count> holders{};
  } worst;
  std::size_t buckets_used = 0;      // number of entries of `buckets`, the timeline, in use
  BucketView buckets[bucket_count];  // timeline of the live bytes, from process start on
};
// A copy of a SlabPage, a 2 MiB page that the driver cuts small requests from, as it was when the
// device had more locked bytes than ever. Locked bytes are unused, but in pages with a live
// allocation.
struct SlabPageView {
  DeviceOrdinal device = no_device;  // the device whose memory the page is
  DeviceAddress address;             // address of the page's first byte
  // Live allocations in the page at the time when the device had more locked bytes than ever.
  SlabContents contents;
};
// A copy of a Device: a device that the process used.
struct DeviceView {
  DeviceOrdinal ordinal = no_device;  // the device's CUDA ordinal, from 0
  std::uint8_t uuid[16]{};            // the device's UUID; zeros: unknown
  std::string_view name;              // the device's name; empty: unknown
  // Occasion of the last reading of the device's memory. `never`: no reading is known, so the
  // fields from `time_ns` to `implicit_when_read_bytes` are not valid.
  ReadingAt at = ReadingAt::never;
  // Time of the last reading of the device's memory, since process start.
  std::uint64_t time_ns = 0;
  // Size and free bytes of the device's memory in the last reading.
  std::uint64_t total_bytes = 0, free_bytes = 0;
  // Bytes that the process's memory pools and graphs kept unused when the device's memory was last
  // read; null: unknown.
  std::optional<std::uint64_t> memory_pool_idle_bytes;
  // Bytes of the device that this process occupied when the device's memory was last read.
  // `allocated_when_read_bytes`: allocations and unused memory of cuwarden's pool, as in Device.
  // `implicit_when_read_bytes`: memory that the driver took by itself. Null only before the view is
  // filled.
  std::optional<std::uint64_t> allocated_when_read_bytes, implicit_when_read_bytes;
  // Bytes of the device that other processes use; 0: none or unknown.
  std::uint64_t other_processes_bytes = 0;
  // Bytes of the device's live allocations that are in host memory (spill): now, and the most so
  // far.
  std::uint64_t spilled_bytes = 0, spilled_peak_bytes = 0;
  std::uint64_t spilled_count = 0;  // number of allocations that were spilled so far
  std::uint64_t spilled_in_stream_order_bytes = 0;  // spilled bytes of stream-ordered allocations
  ArenaUse arena;                                   // figures of cuwarden's pool on the device
  ImplicitBytes implicit;  // memory that the driver took by itself, such as for contexts
  // Mangled name of the kernel that needs ImplicitBytes::largest_local; empty: unknown.
  std::string_view largest_local_kernel;
};
// A copy of an Incident: a request that the driver refused for lack of memory, or a context that
// the compute mode refused. It has the facts known at that moment, and counts of later refusals of
// the same group, of whatever size.
struct IncidentView : IncidentFacts {
  IncidentId id;                 // the incident's row in the incidents table
  GroupId group;                 // the group that the request counts in: its call site
  ThreadId thread;               // thread that made the request; 0: unknown
  std::uint64_t time_ns = 0;     // time of the first refusal, since process start
  std::uint64_t repeats = 0;     // refusals that this incident counts after its first one
  std::uint64_t last_ns = 0;     // time of the last counted refusal, since process start
  std::uint64_t last_bytes = 0;  // size of the last counted refused request; 0: unknown
  // Number of refusals, of those in `failed`, after which the thread repeated the request within 10
  // s until it was served.
  std::uint64_t recovered = 0;
  std::uint64_t failed = 0;                         // refusals that the program saw as an error
  std::array<std::uint64_t, rung_count> rescued{};  // requests that each rung served, by Rung
  std::uint64_t rescued_bytes = 0;                  // bytes of the requests that rungs served
  // Reasons for which rungs (attempts to serve a request) were left out at the first refusal, by
  // Rung.
  std::array<LeftOut, rung_count> left_out{};
};
// A copy of an IncidentHolder: a group that held much memory at the incident's refusal.
struct IncidentHolderView : IncidentHolding {
  IncidentId incident;  // the incident at whose refusal the group held the memory
};
// A copy of an IncidentProcess: another process that used the device at the incident's refusal.
struct IncidentProcessView : OtherProcess {
  IncidentId incident;  // the incident at whose refusal the process used the device
};
// A copy of an IncidentClass: the driver's slabs of one size class at the incident's refusal.
struct IncidentClassView : SlabClassRow {
  IncidentId incident;  // the incident at whose refusal the slabs of the size class were counted
};
// A copy of an IncidentRung: an attempt (rung) to serve the incident's request, and its outcome.
struct IncidentRungView : RungRow {
  IncidentId incident;  // the incident whose request the rung tried to serve
};
// A copy of an IncidentSlab: one of the driver's slabs when the incident's request was refused. A
// group that the ledger's table does not have is read as 0.
struct IncidentSlabView : SlabRow {
  IncidentId incident;  // the incident at whose refusal the slab had these contents
};
// A copy of a Hook: a hooked CUDA function, and the number of its recorded calls.
struct HookView {
  HookId id;                // number of the hook, from 0
  std::string_view name;    // name of the CUDA function
  std::uint64_t calls = 0;  // number of recorded calls of the function, by all threads
};
// A copy of a StepMark: the start of a step of the program.
struct StepMarkView {
  std::uint64_t number = 0;   // number of the step among all that were marked, from 1
  std::uint64_t time_ns = 0;  // start of the step, in ns since the process's start
  std::string_view name;      // name that the program gave the step; empty: none
  // End of the part of the run to which the name applies, in ns since process start; 0: it has not
  // ended, or the step has no name.
  std::uint64_t name_end_ns = 0;
};
// A copy of a FrameworkPool: figures that a framework gives of its own memory. The texts point into
// the ledger.
struct FrameworkPoolView : FrameworkMemory, FrameworkFigures {
  std::uint64_t time_ns = 0;  // time at which the framework gave the figures, since process start
};
// A copy of a NamedCount: a CUDA memory function without a hook, and the number of its lookups.
struct NamedCountView {
  std::string_view name;    // name of the CUDA function
  std::uint64_t count = 0;  // number of lookups of the function's address by the program
};
// A copy of a NamedValue: a setting of cuwarden, or an environment variable.
struct NamedValueView {
  std::string_view name, value;  // name of the setting or variable; its value
  // True: `value` is from the process's environment. False: it is the setting's default.
  bool from_environment = false;
};
// Facts about the recorded process and its ledger. Most are copied from the ledger's header; a few
// numbers are sums over its tables. Texts and `boot_id` point into the ledger's bytes.
struct ProcessView {
  // Pids of the process and of its parent. Parent 0: unknown, or in an outer pid namespace.
  std::uint32_t pid = 0, parent = 0;
  std::int64_t start_realtime_ns = 0;    // start of the process in ns since 1970
  std::uint64_t start_monotonic_ns = 0;  // start of the process in ns of CLOCK_MONOTONIC
  // Start of the process in the kernel's ticks since boot (field 22 of /proc/PID/stat); 0: unknown.
  std::uint64_t start_ticks = 0;
  std::uint32_t pid_namespace = 0;  // inode of the namespace in which `pid` counts; 0: unknown
  bool lock_held = false;  // true: the ledger's file is locked as long as the process lives
  // Device and inode numbers of the ledger's file as the process made it; 0: the ledger was in
  // memory. A copy of the file has other numbers.
  std::uint64_t file_device = 0, file_inode = 0;
  std::span<const std::uint8_t> boot_id;  // the kernel's id of the boot; zeros: unknown
  // Path of the folder of the cgroup that counts the process's memory; empty: unknown.
  std::string_view memory_cgroup;
  // Inode number of the folder `memory_cgroup` when the ledger was made; 0: unknown.
  std::uint64_t memory_cgroup_inode = 0;
  // Number of processes of `memory_cgroup` that the kernel had killed for lack of memory before the
  // ledger was made; 0 also if it is unknown.
  std::uint64_t memory_cgroup_oom_kills = 0;
  std::string_view host;     // name of the machine; empty: unknown
  std::string_view program;  // path of the executable; empty: unknown
  // Arguments from argv[0] on, separated by zero bytes, up to 32 KiB; empty: unknown.
  std::string_view command_line;
  // Absolute path of the report to be written; /dev/null: none; empty: unknown.
  std::string_view report_path;
  std::uint64_t steps = 0;  // number of steps that the program has marked
  // The way in which the latest search for pointers to allocations ended.
  ReachSearch reach_search = ReachSearch::not_made;
  // Bytes of memory that the latest search for pointers looked at, and nanoseconds that it took.
  std::uint64_t reach_scanned_bytes = 0, reach_ns = 0;
  // The way in which the process ended. `running`: no end was noted, because the process runs or
  // was killed. `unknown`: the ledger has no valid value.
  EndReason end_reason = EndReason::unknown;
  // True if the final report is on disk, or the user's settings want none, and no CUDA call came
  // afterwards.
  bool report_written = false;
  // Number in the report's file name; 0: the name has no number. Null: there is no report.
  std::optional<unsigned> report_number;
  std::optional<int> exit_status;  // exit status of the process, 0 to 255; null: unknown
  // Versions of CUDA: of the driver and of the runtime. 13000 stands for 13.0; 0: unknown.
  int driver_version = 0, runtime_version = 0;
  std::uint32_t reasons = 0;  // restrictions of the ledger or the recording: bits of Reason
  // Step that failed when the ledger last could not grow; `none`: the ledger could always grow.
  GrowthOperation growth_operation = GrowthOperation::none;
  int growth_error = 0;  // errno of `growth_operation`; 0: no step has failed
  // Number of stack walks that ended before the outermost frame, by the reason (stacks::Exception).
  std::array<std::uint64_t, stack_exceptions> stacks_cut{};
  std::uint64_t recorded_calls = 0;  // number of recorded calls of hooked functions
  // Number of frees of addresses that had no record, until the ledger became incomplete.
  std::uint64_t unknown_frees = 0;
  // Number of live records that ended because a new allocation got their address or handle.
  std::uint64_t superseded = 0;
  // Number and bytes of the requests for page-locked host memory that cuwarden's pool has served.
  std::uint64_t pinned_served_count = 0, pinned_served_bytes = 0;
  std::uint64_t pinned_held_bytes = 0;  // bytes of page-locked host memory that the pool holds now
  std::uint64_t ledger_bytes = 0;       // bytes of the ledger's header and of its rows in use
  bool cut_short = false;               // true if bytes are missing at the ledger file's end
};

}  // namespace cuwarden::ledger
