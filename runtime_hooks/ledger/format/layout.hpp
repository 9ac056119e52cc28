// The ledger's file, byte by byte: the recorded allocations of one process, mapped MAP_SHARED and
// written in place. Any reader, in any process, at any time, sees a consistent part of the file.
//
//   page 0..        Header (magic, version, regions, process, counters)
//   region r        a contiguous array of fixed-size rows, or a heap of bytes (strings, frames)
//
// The file is sparse: regions lie far apart and are filled from their start. Rows never move. Row 0
// is unused, except in the hooks table, so that 0 means none. A row is published by a release store
// to its `state`; a reader that finds state 0 (for records: an even state) skips the row. Rows of
// hooks, GroupShards and WorstHolders have no `state`.
// The regions' offsets are from the start of the file; integers are little-endian and fixed in
// width.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/device_layout.hpp"
#include "runtime_hooks/ledger/format/framework_layout.hpp"
#include "runtime_hooks/ledger/format/incident_layout.hpp"
#include "runtime_hooks/ledger/format/python_layout.hpp"
#include "runtime_hooks/ledger/format/reach.hpp"
#include "runtime_hooks/ledger/format/series_layout.hpp"
#include "runtime_hooks/ledger/format/slab_layout.hpp"
#include "runtime_hooks/ledger/format/step_layout.hpp"
#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

// First 8 bytes of a ledger's file, as a little-endian number: the text "CWARDEN1".
inline constexpr std::uint64_t magic = 0x31'4e'45'44'52'41'57'43;
inline constexpr std::uint32_t layout_version = 30;  // readers reject files of other versions

// Number of enumerators of stacks::Exception, the reasons why a stack was not walked to its end.
inline constexpr std::size_t stack_exceptions = 6;
// Most frames of one call stack that a ledger stores; further frames, the outermost, are cut off.
inline constexpr std::uint32_t deepest_stack = 1024;

// Value of Group::api for blocks that a framework hands out, since no CUDA function gave them.
inline constexpr HookId no_function{UINT16_MAX};

// The regions of the ledger's file, in the order in which they follow one another. Each is a table
// of rows of one type, or a heap of bytes.
enum class RegionId : std::uint8_t {
  records,           // table of live allocations: rows of type Record
  groups,            // table of groups of allocations: rows of type Group
  stacks,            // table of call stacks: rows of type Stack
  frames,            // table of the stacks' frames: rows of type Frame
  strings,           // heap of bytes with the ledger's texts, to which StringRef refers
  modules,           // table of loaded object files: rows of type Module
  threads,           // table of threads that made recorded calls: rows of type Thread
  series,            // table of totals by kind of memory and device: rows of type Series
  devices,           // table of devices that the process used: rows of type Device
  hooks,             // table of the hooked functions of CUDA: rows of type Hook
  unhooked_lookups,  // table of CUDA functions without a hook that were looked up: NamedCount
  settings,          // table of cuwarden's settings: rows of type NamedValue
  environment,       // table of environment variables: rows of type NamedValue
  group_shards,      // table of a group's counters in one thread's shard: GroupShard
  // Table of counters of calls, 8 bytes each. A thread's shard has a block of calls_in_shard() of
  // them, in which the counter at index i counts the calls of hook i.
  shard_calls,
  incidents,           // table of refused requests: rows of type Incident
  incident_holders,    // table of groups (Group) that held much memory at a refusal: IncidentHolder
  incident_classes,    // table of size classes of the driver's slabs at a refusal: IncidentClass
  incident_slabs,      // table of the driver's slabs at a refusal: rows of type IncidentSlab
  incident_rungs,      // table of attempts to serve refused requests: rows of type IncidentRung
  incident_processes,  // table of other processes on the device at a refusal: IncidentProcess
  slab_pages,          // table of the driver's slabs and their contents: rows of type SlabPage
  // Table of groups of allocations (Group) that kept many bytes locked: free, but in the driver's
  // slabs that are partly live. Rows of type WorstHolder.
  worst_holders,
  python_codes,  // table of the Python functions in stacks: rows of type PythonCode
  steps,         // table of the marks of the program's steps: rows of type StepMark
  frameworks,    // table of figures that frameworks give of their memory: FrameworkPool
};
inline constexpr std::size_t region_count = 26;  // number of regions of the ledger's file

// The part of the ledger's file that one region (a table, or a heap of bytes) occupies, and the
// number of its rows in use.
struct Region {
  std::uint64_t offset;          // start of the region in the ledger's file, in bytes
  std::uint64_t capacity_bytes;  // bytes of the ledger's sparse file reserved for the region
  std::uint32_t row_bytes;       // size of the region's rows in bytes: 1 for heaps of bytes
  std::uint32_t reserved;
  std::atomic<std::uint64_t> used;  // rows (bytes in a heap) handed out; the reserved row 0 counts
  // Bytes from the region's start that are stored in the ledger's file. Bytes of the region behind
  // them are unused, or exist only in the recorded process's memory.
  std::atomic<std::uint64_t> file_bytes;
};

// Bits of Header::reasons: restrictions of the ledger or of the recording. Most of them mean that
// the ledger lacks something. reason_ledger_in_memory and reason_pool_not_shared do not mean this.
// reason_ledger_partly_in_memory means it only for readers outside of the recorded process.
enum Reason : std::uint32_t {
  reason_ledger_in_memory = 1u << 0,         // the ledger has no file: no recovery after a kill
  reason_ledger_partly_in_memory = 1u << 1,  // the file could not grow, so later rows are in memory
  // A table had no room for an entry, which is missing. Not set once reason_recording_stopped or
  // reason_confined is set.
  reason_ledger_full = 1u << 2,
  // A lock could not be had, as when it was held for over 10 s: calls are missing.
  reason_recording_stopped = 1u << 3,
  // An allocation got an address or handle that a live record had: a free was not seen.
  reason_superseded = 1u << 4,
  reason_driver_out_of_sight = 1u << 5,  // calls of a libcuda in a dlmopen namespace are missing
  // No room for a thread, module, device, Python function, setting, step's name or other text.
  reason_names_missing = 1u << 6,
  // The program was refused an IPC handle of memory that cuwarden served. The ledger lacks nothing.
  reason_pool_not_shared = 1u << 7,
  reason_confined = 1u << 8,  // a seccomp filter kept a table from growing: entries are missing
};

// The steps in which a ledger grows, any of which may fail. open: its file is opened. allocate:
// blocks of the file are allocated. map: memory is mapped where the file cannot grow. allow_access:
// pages are made readable and writable. none: no step.
enum class GrowthOperation : std::uint32_t { none, open, allocate, map, allow_access };

// The way in which the recorded process ended.
enum class EndReason : std::uint32_t {
  running,          // no end was noted: the process runs, or was killed
  exit,             // exit(), or a return from main()
  underscore_exit,  // _exit()
  quick_exit,       // quick_exit()
  abort,            // abort()
  signal,           // a signal killed the process: found afterwards, never stored in a ledger
  unknown,          // the way is not known: found afterwards, never stored in a ledger
};

// Facts about the recorded process. They are written before Header::published is set, and never
// change.
struct Process {
  std::uint32_t pid;     // pid of the process in the namespace `pid_namespace`
  std::uint32_t parent;  // pid of the parent process; 0: unknown, or in an outer pid namespace
  // Start of the process in ns since 1970; if unknown, the time at which the ledger was made.
  std::int64_t start_realtime_ns;
  // Start of the process in ns of CLOCK_MONOTONIC; if unknown, the time at which the ledger was
  // made. The ledger's other times count from this moment.
  std::uint64_t start_monotonic_ns;
  std::uint64_t start_ticks;  // start in the kernel's ticks since boot (/proc/PID/stat); 0: unknown
  std::uint32_t pid_namespace;  // inode of the pid namespace in which `pid` counts; 0: unknown
  // 1: the ledger's file has a lock (flock) as long as the process lives, because the file's
  // mapping holds the lock. 0: the file system does not keep such a lock, or there is no file.
  std::uint32_t lock_held;
  // Device and inode numbers of the ledger's original file; 0 if the ledger is in memory. A file
  // with other numbers is a copy. The process locks only the original, so the process may live
  // although a copy has no lock.
  std::uint64_t file_device, file_inode;
  std::uint8_t boot_id[16];  // /proc/sys/kernel/random/boot_id; zeros: unknown
  StringRef host;            // the machine's node name; empty: unknown
  StringRef program;         // path of the executable; empty: unknown
  StringRef command_line;    // arguments separated by zero bytes, up to 32 KiB; empty: unknown
  StringRef report_path;    // absolute path of the report, with % fields filled in; /dev/null: none
  StringRef memory_cgroup;  // folder of the cgroup that counts the process's memory; empty: unknown
  // Inode of the folder `memory_cgroup`; 0: unknown. A later cgroup of equal path has another
  // inode.
  std::uint64_t memory_cgroup_inode;
  // Number of processes that the kernel had killed in the cgroup for lack of memory before the
  // ledger was made; 0 also if it is unknown.
  std::uint64_t memory_cgroup_oom_kills;
};

// The beginning of the ledger's file. Times are nanoseconds since process start.
struct Header {
  std::uint64_t magic;         // first 8 bytes of the ledger's file: ledger::magic
  std::uint32_t version;       // version of the layout: layout_version
  std::uint32_t header_bytes;  // sizeof(Header)
  // Size in bytes of the ledger's sparse file, or of the memory in its stead, with unused parts.
  std::uint64_t file_bytes;
  std::uint64_t checksum;  // header_checksum() of the fields that never change
  // Address of the ledger's mapping in the recorded process. A reader in that process that uses
  // this mapping also sees bytes that could not be stored in the file. Other readers see zeros
  // there.
  std::uint64_t mapped_at;
  Process process;                        // facts about the recorded process
  std::atomic<std::uint32_t> published;   // 1: the header's constant fields are written; 0: not yet
  std::atomic<std::uint32_t> reasons;     // Reason bits: restrictions of the ledger or recording
  std::atomic<std::uint32_t> end_reason;  // EndReason: the way in which the process ended
  std::atomic<std::uint32_t> exit_status;        // 0 to 255; valid only if exit_status_known is 1
  std::atomic<std::uint32_t> exit_status_known;  // 1: `exit_status` is valid; 0: it is unknown
  std::atomic<std::uint32_t> runtime_version;    // as cudaRuntimeGetVersion gives it; 0: unknown
  std::atomic<std::uint32_t> driver_version;     // as cuDriverGetVersion gives it; 0: unknown
  std::uint32_t reserved;
  // Number of the recorded calls that are counted here only: frees at the process's end that the
  // runtime did not pass to the driver. Other calls are counted in Hook::calls and
  // RegionId::shard_calls.
  std::atomic<std::uint64_t> recorded_calls;
  // Number of frees of addresses that had no record. Frees are not counted once the ledger is
  // incomplete, since the ledger may then lack the record.
  std::atomic<std::uint64_t> unknown_frees;
  // Number of live allocation records that were ended because a new allocation got their address or
  // handle: a free was not seen.
  std::atomic<std::uint64_t> superseded;
  // The module epoch: number of modules (loaded object files) that were unloaded so far, of those
  // that occurred in call stacks. An address belongs to one module only within an epoch.
  std::atomic<std::uint64_t> module_epoch;
  // Number and bytes of the requests for page-locked host memory that cuwarden's pool has served.
  std::atomic<std::uint64_t> pinned_served_count, pinned_served_bytes;
  std::atomic<std::uint64_t> pinned_held_bytes;  // page-locked bytes that the pool holds now
  // 1: the final report is on disk, or the user's settings want none. The ledger is kept, because
  // the process may go on after all: its handler of SIGABRT may jump away, or only a child that
  // shares its memory has ended. 0: the report is still missing, or a CUDA call came after it.
  std::atomic<std::uint32_t> report_written;
  // The number in the report's file name, plus 1. 1: the name has no number. 0: there is no report.
  std::atomic<std::uint32_t> report_number;
  // The GrowthOperation that failed when the ledger last could not grow; 0: it could always grow.
  std::atomic<std::uint32_t> growth_operation;
  std::atomic<std::uint32_t> growth_error;  // errno of the `growth_operation`; 0: none has failed
  // Number of stack walks that ended before the outermost frame, by the reason (stacks::Exception).
  std::atomic<std::uint64_t> stacks_cut[stack_exceptions];
  std::atomic<std::uint64_t> steps;  // number of steps that the program has marked
  // The latest search of the process's memory for pointers to allocations. `reach_search`: how the
  // search ended, a ReachSearch. `reach_scanned_bytes`: bytes of memory that it looked at.
  // `reach_ns`: nanoseconds that it took.
  std::atomic<std::uint64_t> reach_search, reach_scanned_bytes, reach_ns;
  Region regions[region_count];  // the parts of the ledger's file, by RegionId
};

// A row for one allocation. `state` is odd while the allocation is live: the writer sets it by a
// release store after it has filled the row. At the allocation's end, `state` becomes an even
// number. Some fields of a live row can change: `address` for virtual memory; `mappings` and
// `references` for virtual memory and for memory by an IPC handle; `bytes` for virtual memory and
// for memory that the driver took by itself; `flags` and `difference` for all.
struct Record {
  std::atomic<std::uint32_t> state;  // odd: live; even: empty, ended or being filled
  std::uint32_t group;               // row in the groups table of the allocation's group
  std::uint64_t address;             // address or handle; with `space`, it is the record's key
  std::uint64_t bytes;               // size as the program requested it; 0: unknown
  std::uint64_t time_ns;             // time of the allocation since process start, exact to some ms
  std::uint64_t context;             // CUcontext that the memory belongs to; 0: none
  // Row of the record that counts the memory's bytes, if this record is of a vmm_mapping or of a
  // further vmm_handle of the same memory; 0: unknown. Other records have 0.
  std::uint64_t related;
  std::uint32_t thread;  // row in the threads table of the thread that allocated; 0: unknown
  // Number of live mappings and second handles of the memory of a vmm_handle (a handle of virtual
  // memory); 0 for other records.
  std::uint32_t mappings;
  // Number of references that keep the allocation live. For a vmm_handle: creations and retains
  // less releases. For memory by an IPC handle: openings. 0: the record counts none.
  std::uint32_t references;
  Space space;         // kind of number that `address` is, such as a pointer or a handle
  std::uint8_t flags;  // RecordFlag bits, and a Reach in the bits above them
  // For a record with record_bytes_shared: number, from 1, of the latest difference of which
  // `bytes` has a part. A difference is device memory that several objects took together, as two
  // readings of the device showed. 0: none, or a later one than the 65,535 that get numbers.
  std::uint16_t difference;
};
static_assert(sizeof(Record) == 64);

// Bits of Record::flags.
enum RecordFlag : std::uint8_t {
  record_owned_by_context = 1u << 0,  // the allocation ends with its context
  record_counts_no_bytes = 1u << 1,   // another record counts the bytes of this memory
  record_in_pool = 1u << 2,           // served by cuwarden's pool, so in no slab of the driver
  // For a stream, loaded code, an executable graph or a context: the memory that the driver took
  // for it is not known for certain. It was not measured, or another process may have changed the
  // device's memory meanwhile. `bytes` has the part that is certain.
  record_bytes_uncertain = 1u << 3,
  // For a stream, loaded code or an executable graph: the driver took memory for several such
  // objects together, and `bytes` has an equal part of it.
  record_bytes_shared = 1u << 4,
};
// The three highest bits of Record::flags are a Reach: what a search for pointers found.
inline constexpr unsigned record_reach_shift = 5;
inline constexpr std::uint8_t record_reach_bits = 7u << record_reach_shift;

// The counters of one group of allocations in one shard, from process start on. A shard belongs to
// one thread, which alone changes its counters; only shard 0 is shared by several threads.
struct Counters {
  std::atomic<std::uint64_t> allocations, allocated_bytes;  // number and bytes of allocations
  // Number and bytes of frees by the program. Allocations that end with their context do not count.
  std::atomic<std::uint64_t> frees, freed_bytes;
  std::atomic<std::uint64_t> last_ns;  // time of the last allocation since process start; 0: none
  // LongestLife::word() of the allocations that the program has freed.
  std::atomic<std::uint64_t> longest_life;
};

// All allocations with the same call stack, CUDA function, kind and device. An allocation is live
// until it is freed or released with its context; group_counts.hpp adds up the counters.
struct Group {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t stack;  // the call stack's row in the stacks table; 0: none was recorded
  // Row in the hooks table of the function that the program called; no_function if a framework
  // handed the blocks out.
  std::uint16_t api;
  Kind kind;            // kind of memory
  std::uint8_t shard;   // number, from 0, of the thread shard that `counters` belongs to
  std::int32_t device;  // CUDA ordinal; -1 for host memory
  // Row of the group's Series (totals of its kind and device); 0: there was no room for one.
  std::uint32_t series;
  std::atomic<std::uint32_t> first_shard;  // row of the group's first GroupShard; 0: none
  std::uint32_t next_in_series;            // row of the next group of the series; 0 ends the list
  std::atomic<std::uint32_t> incident;     // row of the group's latest incident; 0: none
  std::atomic<std::uint64_t> first_ns;  // time of the first allocation since process start; 0: none
  // Refused requests for memory or a graph for which the program got an error. Requests for other
  // things, such as a context, do not count.
  std::atomic<std::uint64_t> failures;
  // Number and bytes of allocations that ended with their context, not by a free.
  std::atomic<std::uint64_t> released_count, released_bytes;
  // Counts of one thread shard, whose number is the field `shard`. Other shards count here, too, if
  // the ledger had no room for a GroupShard of their own. The counters lie on one cache line.
  Counters counters;
  // Number and bytes of the group's live allocations when the live bytes of its series were
  // highest, or up to 1 % lower.
  std::atomic<std::uint64_t> at_peak_count, at_peak_bytes;
};
static_assert(offsetof(Group, counters) == 64 && sizeof(Group) == 128);

// The counters of a group in one thread shard. A row fills a cache line. The shard with the number
// Group::shard has no such row: its counters lie in the Group.
struct GroupShard {
  std::uint32_t group;  // row in the groups table of the group that `counters` belongs to; never 0
  std::uint32_t shard;  // number, from 0, of the thread shard that `counters` belongs to
  std::uint32_t next;   // row of the group's next GroupShard; 0 ends the list
  std::uint32_t reserved;
  Counters counters;  // allocations and frees that the shard's thread has counted in the group
};
static_assert(sizeof(GroupShard) == 64);

// A call stack, innermost frame first.
struct Stack {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t count;               // number of the stack's frames
  std::uint64_t first;               // index of the innermost frame in the frames region
  std::uint64_t hash;                // hash of the frames' addresses and of `truncated`
  std::uint64_t module_epoch;        // number of modules unloaded before the row was made
  std::uint32_t truncated;           // 1: outer frames were cut off; 0: none
  std::uint32_t reserved;
};
// One frame of a call stack: an address in the recorded process, or the number of an instruction of
// a Python function (is_python_frame()). The address lies inside the call instruction (return
// address - 1). For a signal frame, it is that of the interrupted instruction.
using Frame = std::uint64_t;

// A file with code (program or library) that was loaded at an address. A file that is loaded again
// elsewhere gets a further row only when a new stack has a frame in it. An epoch is a value of
// Header::module_epoch.
struct Module {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  // Row of the first module that was loaded from this module's file, which may be this row. Modules
  // of one file have equal code at equal offsets from their bases. Copies of a file with equal
  // build ids count as one file, whatever their names.
  std::uint32_t file;
  std::uint32_t build_id_bytes;  // length of `build_id`; 0: the module's file has no id
  std::uint8_t build_id[32];     // the linker's id of the module's file: build_id_bytes bytes
  StringRef path;                // path of the module's file; empty: unknown
  // Load base: an address less the base is the address in the tables of the module's file.
  std::uint64_t base;
  std::uint64_t start, end;  // mapped range of addresses; `end` is exclusive
  // Number of modules unloaded before this row was made (Header::module_epoch).
  std::uint64_t loaded_epoch;
  // Number of modules unloaded up to and including this one; 0: the module is still loaded.
  std::atomic<std::uint64_t> unloaded_epoch;
};

// A thread that made a recorded call.
struct Thread {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t tid;                 // the kernel's thread id
  // Name that the thread had at its first recorded call. The name ends with a zero byte.
  char name[16];
  // Time of the thread's first recorded call, in ns since process start.
  std::uint64_t first_ns;
  RequestUnderWay under_way;  // the thread's refused request for which a rung is tried now
};

// A hooked function of CUDA. Row i of the hooks table is hook i of
// runtime_hooks/driver/hooks.def.
struct Hook {
  // Number of calls of the function by threads that have no counters in RegionId::shard_calls.
  std::atomic<std::uint64_t> calls;
  StringRef name;  // name of the CUDA function
};

// A memory function of CUDA without a hook, whose address the program looked up.
struct NamedCount {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t reserved;
  StringRef name;                    // name of the CUDA function
  std::atomic<std::uint64_t> count;  // number of lookups of the function (dlsym, cuGetProcAddress)
};

// A setting of cuwarden, or an environment variable of the process.
struct NamedValue {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  // Origin of `value`. 0: the setting's default; 1: the process's environment.
  std::uint32_t source;
  StringRef name;   // name of the setting or variable
  StringRef value;  // value of the setting or variable
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace cuwarden::ledger
