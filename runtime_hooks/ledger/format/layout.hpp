// The ledger's file, byte by byte: the recorded allocations of one process, mapped MAP_SHARED and
// written in place. Any reader, in any process, at any time, sees a consistent part of the file.
//
//   page 0..        Header (magic, version, regions, process, counters)
//   region r        a contiguous array of fixed-size rows, or a heap of bytes (strings, frames)
//
// The file is sparse: regions lie far apart and are filled from their start. Rows never move. Row 0
// is unused, except in the hooks table, so that 0 means none. A row is published by a release store
// to its `state`; a reader that finds state 0 (for records: an even state) skips the row.
// Offsets are from the start of the file; integers are little-endian and fixed in width.
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

// First 8 bytes of a ledger's file: "CWARDEN1" in memory.
inline constexpr std::uint64_t magic = 0x31'4e'45'44'52'41'57'43;
inline constexpr std::uint32_t layout_version = 27;  // readers reject files of other versions

// Number of enumerators of stacks::Exception, the reasons why a stack was not walked to its end.
inline constexpr std::size_t stack_exceptions = 6;
// Most frames of one call stack that a ledger stores; further frames, the outermost, are cut off.
inline constexpr std::uint32_t deepest_stack = 1024;

// Number in place of a hook's for groups whose memory no CUDA function gave: blocks of frameworks.
inline constexpr HookId no_function{UINT16_MAX};

// The regions of the ledger's file, in their order. Each is a table of rows, or a heap.
enum class RegionId : std::uint8_t {
  records,             // table of live allocations: rows of type Record
  groups,              // table of groups of allocations: rows of type Group
  stacks,              // table of call stacks: rows of type Stack
  frames,              // table of the stacks' frames: rows of type Frame
  strings,             // heap of bytes with the ledger's texts, to which StringRef refers
  modules,             // table of loaded object files: rows of type Module
  threads,             // table of threads that made recorded calls: rows of type Thread
  series,              // table of totals by kind and device: rows of type Series
  devices,             // table of devices that the process used: rows of type Device
  hooks,               // table of the hooked functions of CUDA: rows of type Hook
  unhooked_lookups,    // table of functions without a hook that were looked up: NamedCount
  settings,            // table of cuwarden's settings: rows of type NamedValue
  environment,         // table of environment variables: rows of type NamedValue
  group_shards,        // table of counters of a group in one thread's shard: GroupShard
  shard_calls,         // call counters of 8 bytes: calls_in_shard() for each thread's shard
  incidents,           // table of refused requests: rows of type Incident
  incident_holders,    // table of groups (Group) that held much memory at a refusal: IncidentHolder
  incident_classes,    // table of slabs by size class at a refusal: rows of type IncidentClass
  incident_slabs,      // table of the driver's slabs at a refusal: rows of type IncidentSlab
  incident_rungs,      // table of attempts to serve refused requests: rows of type IncidentRung
  incident_processes,  // table of other processes at a refusal: rows of type IncidentProcess
  slab_pages,          // table of the driver's slabs and their contents: rows of type SlabPage
  // Table of groups of allocations (Group) that kept many bytes locked: free, but in the driver's
  // slabs that are partly live. Rows of type WorstHolder.
  worst_holders,
  python_codes,  // table of the Python functions in stacks: rows of type PythonCode
  steps,         // table of the marks of the program's steps: rows of type StepMark
  frameworks,    // table of figures that frameworks give: rows of type FrameworkPool
};
inline constexpr std::size_t region_count = 26;  // number of regions of the file

// The part of the file that one table (or heap of bytes) occupies, and how much of that is in use.
struct Region {
  std::uint64_t offset;          // offset of the region in the file, in bytes
  std::uint64_t capacity_bytes;  // bytes of the sparse file that are reserved for the region
  std::uint32_t row_bytes;       // size of the region's rows in bytes: 1 for heaps of bytes
  std::uint32_t reserved;
  std::atomic<std::uint64_t> used;  // rows (or bytes) handed out, the reserved row 0 included
  // Bytes from the region's start that are in the file; later ones are unused or in memory only.
  std::atomic<std::uint64_t> file_bytes;
};

// Restrictions of the ledger or the recording; bits of Header::reasons. After most of them,
// something is missing in the ledger; not after reason_ledger_in_memory and reason_pool_not_shared.
enum Reason : std::uint32_t {
  reason_ledger_in_memory = 1u << 0,         // the ledger has no file: no recovery after a kill
  reason_ledger_partly_in_memory = 1u << 1,  // the file could not grow, so later rows are in memory
  reason_ledger_full = 1u << 2,              // a table had no room for an entry, which is missing
  reason_recording_stopped = 1u << 3,        // a lock was held for over 10 s: calls are missing
  reason_superseded = 1u << 4,               // an address or handle came twice: a free was not seen
  reason_driver_out_of_sight = 1u << 5,  // calls of a libcuda in a dlmopen namespace are missing
  reason_names_missing = 1u << 6,  // no room for a thread, module, device, setting, name or text
  // The program was refused an IPC handle of memory that cuwarden served. Nothing is incomplete.
  reason_pool_not_shared = 1u << 7,
  reason_confined = 1u << 8,  // a seccomp filter kept a table from growing: entries are missing
};

// The steps in which a ledger grows: its file is opened, blocks of the file are allocated, memory
// is mapped where the file cannot grow, access to pages is allowed. `none` stands for no step.
enum class GrowthOperation : std::uint32_t { none, open, allocate, map, allow_access };

// The way in which the recorded process ended. `underscore_exit`: _exit(). `running`: no end was
// noted; the process runs, or was killed. A ledger never has `signal` or `unknown`.
enum class EndReason : std::uint32_t {
  running,          // no end was noted: the process runs, or was killed
  exit,             // exit(), or a return from main()
  underscore_exit,  // _exit()
  quick_exit,       // quick_exit()
  abort,            // abort()
  signal,           // a signal has killed the process; never in a ledger
  unknown,          // the way is not known; never in a ledger
};

// Facts about the recorded process. They are written before Header::published is set, and never
// change.
struct Process {
  std::uint32_t pid;               // pid of the process, as in `pid_namespace`
  std::uint32_t parent;            // pid of the parent process
  std::int64_t start_realtime_ns;  // start of the process since 1970; if unknown, the ledger's
  // Start of the process by CLOCK_MONOTONIC. The ledger's other times count from this moment.
  std::uint64_t start_monotonic_ns;
  std::uint64_t start_ticks;  // start in the kernel's ticks since boot (/proc/PID/stat); 0: unknown
  std::uint32_t pid_namespace;  // inode of the pid namespace in which `pid` counts; 0: unknown
  // 1: the ledger's file has a lock (flock) as long as the process lives, because the file's
  // mapping holds the lock. 0: the file system does not keep such a lock, or there is no file.
  std::uint32_t lock_held;
  // Device and inode of the ledger's original file; 0 if the ledger is in memory. A file with other
  // numbers is a copy. The process locks the original alone, so a copy without a lock does not tell
  // that the process has ended.
  std::uint64_t file_device, file_inode;
  std::uint8_t boot_id[16];  // /proc/sys/kernel/random/boot_id; zeros: unknown
  StringRef host;            // the machine's node name; empty: unknown
  StringRef program;         // path of the executable; empty: unknown
  StringRef command_line;    // arguments separated by zero bytes, up to 32 KiB; empty: unknown
  StringRef report_path;    // absolute path of the report, with % fields filled in; /dev/null: none
  StringRef memory_cgroup;  // folder of the cgroup that counts the process's memory; empty: unknown
  // Inode of the folder `memory_cgroup`; 0: unknown. A later cgroup of equal path has another one.
  std::uint64_t memory_cgroup_inode;
  // Number of processes that the kernel had killed in the cgroup for lack of memory before the
  // ledger was made; 0 also if it is unknown.
  std::uint64_t memory_cgroup_oom_kills;
};

// The beginning of the ledger's file. Times are nanoseconds since process start.
struct Header {
  std::uint64_t magic;         // the file's first 8 bytes: ledger::magic
  std::uint32_t version;       // version of the layout: layout_version
  std::uint32_t header_bytes;  // sizeof(Header)
  std::uint64_t file_bytes;    // size of the sparse file, with its unused parts
  std::uint64_t checksum;      // header_checksum() of the fields that never change
  // Address of the file's mapping in the recorded process. A reader that uses this very mapping
  // also sees bytes that could not be stored in the file; to other readers they are zeros.
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
  // Calls of hooked functions that neither Hook::calls nor RegionId::shard_calls counts.
  std::atomic<std::uint64_t> recorded_calls;
  std::atomic<std::uint64_t> shim_ns;  // time that the shim's own work took so far; 0: not measured
  // Number of frees of addresses without a record, counted only while the ledger lacks no records.
  std::atomic<std::uint64_t> unknown_frees;
  // Number of live allocation records that were ended because their address or handle came again: a
  // free was not seen.
  std::atomic<std::uint64_t> superseded;
  // The module epoch: number of modules (loaded object files) that were unloaded so far. An address
  // belongs to one module only within an epoch.
  std::atomic<std::uint64_t> module_epoch;
  // Number and bytes of the requests for page-locked host memory that cuwarden's pool has served.
  std::atomic<std::uint64_t> pinned_served_count, pinned_served_bytes;
  std::atomic<std::uint64_t> pinned_held_bytes;  // page-locked bytes that the pool holds now
  // 1: the final report is on disk, but the ledger is kept: the process may go on after all (an
  // abort whose signal handler jumps away). A later CUDA call sets it to 0.
  std::atomic<std::uint32_t> report_written;
  // The number in the report's file name plus 1 (1: the name has no number); 0: no report.
  std::atomic<std::uint32_t> report_number;
  // The GrowthOperation that failed when the ledger last could not grow; 0: it could always grow.
  std::atomic<std::uint32_t> growth_operation;
  std::atomic<std::uint32_t> growth_error;  // errno of the `growth_operation`; 0: none has failed
  // Number of stack walks that ended before the outermost frame, by the reason (stacks::Exception).
  std::atomic<std::uint64_t> stacks_cut[stack_exceptions];
  std::atomic<std::uint64_t> steps;  // number of steps that the program has marked
  // The latest search for pointers to allocations: a ReachSearch, which tells how it ended; the
  // bytes of memory that were looked at; and the time that it took.
  std::atomic<std::uint64_t> reach_search, reach_scanned_bytes, reach_ns;
  Region regions[region_count];  // the parts of the file, indexed by RegionId
};

// One live allocation. The writer makes `state` odd (by a release store) once the row is filled,
// and even at the end. Live rows of virtual memory and IPC may change size, address and counts.
struct Record {
  std::atomic<std::uint32_t> state;  // odd: live; even: empty, ended or being filled
  std::uint32_t group;               // row in the groups table of the allocation's group
  std::uint64_t address;             // address or handle; with `space`, it is the record's key
  std::uint64_t bytes;               // size as the program requested it; 0: unknown
  std::uint64_t time_ns;             // allocation's time since process start, exact to some ms
  std::uint64_t context;             // CUcontext that the memory belongs to; 0: none
  // For a vmm_mapping, and for a second vmm_handle of one memory: row of the record that counts the
  // memory's bytes; 0: unknown. For all others: 0.
  std::uint64_t related;
  std::uint32_t thread;  // row in the threads table of the thread that allocated; 0: unknown
  // Number of live mappings and second handles of the memory of a vmm_handle (a handle of virtual
  // memory); 0 for other records.
  std::uint32_t mappings;
  // References that keep the allocation live: of a vmm_handle, creations and retains less releases;
  // of memory by an IPC handle, openings. 0: the record counts none.
  std::uint32_t references;
  Space space;         // kind of number that `address` is, such as a pointer or a handle
  std::uint8_t flags;  // RecordFlag bits, and a Reach in the bits above them
  // Number of the latest difference of which a record with record_bytes_shared has a part. A
  // difference is the device memory that several objects took together, as a reading of the device
  // showed. 0: none, or one after the 65,535 that are numbered.
  std::uint16_t difference;
};
static_assert(sizeof(Record) == 64);

// Bits of Record::flags.
enum RecordFlag : std::uint8_t {
  record_owned_by_context = 1u << 0,  // the allocation ends with its context
  record_counts_no_bytes = 1u << 1,   // an address or handle of memory that counts elsewhere
  record_in_pool = 1u << 2,  // served by cuwarden's pool, so it is in no slab of the driver's
  // For a stream, a module or an executable graph: the memory that the driver took for it is not
  // known for certain, since it was not measured or another process may have changed the device's
  // memory meanwhile. `bytes` has the part that is certain.
  record_bytes_uncertain = 1u << 3,
  // For a stream, a module or an executable graph: the driver took memory for several such objects
  // together, and `bytes` has an equal part of it.
  record_bytes_shared = 1u << 4,
};
// The three highest bits of Record::flags are a Reach: what a search for pointers found.
inline constexpr unsigned record_reach_shift = 5;
inline constexpr std::uint8_t record_reach_bits = 7u << record_reach_shift;

// The counters of one group of allocations in one shard, from process start on. A shard belongs to
// one thread, which alone changes its counters; only shard 0 is shared by several threads.
struct Counters {
  std::atomic<std::uint64_t> allocations, allocated_bytes;  // number and bytes of allocations
  std::atomic<std::uint64_t> frees, freed_bytes;  // frees by the program, not by ends of contexts
  std::atomic<std::uint64_t> last_ns;  // time of the last allocation since process start; 0: none
  std::atomic<std::uint64_t>
      longest_life;  // LongestLife::word() of the allocations that were freed
};

// All allocations with the same call stack, CUDA function, kind and device. An allocation is live
// until it is freed or released with its context; group_counts.hpp adds up the counters.
struct Group {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t stack;               // row of the stacks table
  std::uint16_t api;                 // row of the hooks table: the function that the program called
  Kind kind;                         // kind of memory
  std::uint8_t shard;                // number of the thread's shard to which `counters` belongs
  std::int32_t device;               // CUDA ordinal; -1 for host memory
  // Row of the group's Series (totals of its kind and device); 0: there was no room for one.
  std::uint32_t series;
  std::atomic<std::uint32_t> first_shard;  // row of the group's first GroupShard; 0: none
  std::uint32_t next_in_series;            // row of the next group of the series; 0 ends the list
  std::atomic<std::uint32_t> incident;     // row of the group's latest incident; 0: none
  std::atomic<std::uint64_t> first_ns;  // time of the first allocation since process start; 0: none
  std::atomic<std::uint64_t> failures;  // requests refused with an error to the program
  // Number and bytes of allocations that ended with their context, not by a free.
  std::atomic<std::uint64_t> released_count, released_bytes;
  // Counters of the thread's shard number `shard`, and of shards that got no GroupShard for lack of
  // room. They lie on one cache line.
  Counters counters;
  // Number and bytes of the group's live allocations when the live bytes of its series were
  // highest, or up to 1 % lower.
  std::atomic<std::uint64_t> at_peak_count, at_peak_bytes;
};
static_assert(offsetof(Group, counters) == 64 && sizeof(Group) == 128);

// The counters of a group in one thread's shard, if that shard is not Group::shard. Fills a cache
// line.
struct GroupShard {
  std::uint32_t group;  // row of the groups table
  std::uint32_t shard;  // number of the thread's shard
  std::uint32_t next;   // row of the group's next GroupShard; 0 ends the list
  std::uint32_t reserved;
  Counters counters;  // allocations and frees that the shard's thread has counted in the group
};
static_assert(sizeof(GroupShard) == 64);

// A call stack, innermost frame first.
struct Stack {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t count;               // number of frames
  std::uint64_t first;               // index of the innermost frame in the frames region
  std::uint64_t hash;                // hash of the frames' addresses and of `truncated`
  std::uint64_t module_epoch;        // modules unloaded so far when the row was made
  std::uint32_t truncated;           // 1: outer frames were cut off
  std::uint32_t reserved;
};
// A frame is an address inside the call instruction (return address - 1; the interrupted
// instruction itself for a signal frame), as mapped in the recorded process; or it stands for
// an instruction of a Python function (is_python_frame()).
using Frame = std::uint64_t;

// An object file (program or library) that was loaded at an address. It gets a row for another
// address only for a new stack there. An epoch is a value of Header::module_epoch.
struct Module {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  // Row of the first module of this file. Modules of one file have equal code at equal offsets
  // from their bases. Copies of a file with one build id are one file, whatever their names.
  std::uint32_t file;
  std::uint32_t build_id_bytes;  // length of `build_id`; 0: the file has none
  std::uint8_t build_id[32];     // the linker's id of the file; only build_id_bytes are used
  StringRef path;                // path of the file; empty: unknown
  std::uint64_t base;            // load base: address - base = address as in the file's tables
  std::uint64_t start, end;      // mapped range of addresses; `end` is exclusive
  std::uint64_t loaded_epoch;    // module epoch (unloads so far) when the row was made
  std::atomic<std::uint64_t> unloaded_epoch;  // module epoch after the unloading; 0: still loaded
};

// A thread that made a recorded call.
struct Thread {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t tid;                 // the kernel's thread id
  char name[16];                     // as the kernel knows it; ends with a zero byte
  std::uint64_t first_ns;            // time of the first recorded call since process start
  RequestUnderWay under_way;         // the thread's refused request for which a rung is tried now
};

// A hooked function of CUDA. Row i of the hooks table is hook i of driver/hooks.def.
struct Hook {
  // Calls of the function by threads without counters of their own in RegionId::shard_calls.
  std::atomic<std::uint64_t> calls;
  StringRef name;  // the function's name
};

// A memory function of CUDA without a hook, whose address the program looked up.
struct NamedCount {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t reserved;
  StringRef name;                    // the function's name
  std::atomic<std::uint64_t> count;  // number of lookups (dlsym, cuGetProcAddress)
};

// A setting of cuwarden, or an environment variable of the process.
struct NamedValue {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t source;              // 0: the setting's default; 1: the environment
  StringRef name;                    // name of the setting or variable
  StringRef value;                   // value of the setting or variable
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace cuwarden::ledger
