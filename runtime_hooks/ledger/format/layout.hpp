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
#include "runtime_hooks/ledger/format/device_layout.hpp"
#include "runtime_hooks/ledger/format/incident_layout.hpp"
#include "runtime_hooks/ledger/format/slab_layout.hpp"
#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

// First 8 bytes of a ledger's file: "CWARDEN1" in memory.
inline constexpr std::uint64_t magic = 0x31'4e'45'44'52'41'57'43;
inline constexpr std::uint32_t layout_version = 20;  // readers reject files of other versions

// Number of enumerators of stacks::Exception, the reasons why a stack was not walked to its end.
inline constexpr std::size_t stack_exceptions = 6;
// Most frames of one call stack that a ledger stores; further frames, the outermost, are cut off.
inline constexpr std::uint32_t deepest_stack = 1024;

// The regions of the ledger's file, in their order. Each is a table of rows, or a heap.
enum class RegionId : std::uint8_t {
  records,             // rows of type Record
  groups,              // Group
  stacks,              // Stack
  frames,              // Frame
  strings,             // heap of bytes, to which StringRef refers
  modules,             // Module
  threads,             // Thread
  series,              // Series
  devices,             // Device
  hooks,               // Hook
  unhooked_lookups,    // NamedCount
  settings,            // NamedValue
  environment,         // NamedValue
  group_shards,        // GroupShard
  shard_calls,         // call counters of 8 bytes: calls_in_shard() for each shard
  incidents,           // Incident
  incident_holders,    // IncidentHolder
  incident_classes,    // IncidentClass
  incident_slabs,      // IncidentSlab
  incident_rungs,      // IncidentRung
  incident_processes,  // IncidentProcess
  slab_pages,          // SlabPage
  worst_holders,       // WorstHolder
};
inline constexpr std::size_t region_count = 23;

// The part of the file that one table (or heap of bytes) occupies, and how much of that is in use.
struct Region {
  std::uint64_t offset;          // offset of the region in the file
  std::uint64_t capacity_bytes;  // bytes that are reserved for the region
  std::uint32_t row_bytes;       // size of a row: 1 for heaps of bytes, 8 for frames
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
  reason_recording_stopped = 1u << 3,        // a lock was not to be had (10 s): calls are missing
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
  running,
  exit,
  underscore_exit,
  quick_exit,
  abort,
  signal,
  unknown,
};

// Facts about the recorded process. They are written before Header::published is set, and never
// change.
struct Process {
  std::uint32_t pid;
  std::uint32_t parent;              // pid of the parent process
  std::int64_t start_realtime_ns;    // process's start since 1970; the ledger's if unknown
  std::uint64_t start_monotonic_ns;  // start by CLOCK_MONOTONIC; other times count from it
  std::uint64_t start_ticks;         // start in ticks since boot (/proc/PID/stat); 0: unknown
  std::uint32_t pid_namespace;       // inode of the pid namespace in which `pid` counts; 0: unknown
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
  std::uint64_t magic;         // ledger::magic
  std::uint32_t version;       // layout_version
  std::uint32_t header_bytes;  // sizeof(Header)
  std::uint64_t file_bytes;    // size of the sparse file, with its unused parts
  std::uint64_t checksum;      // header_checksum() of the fields that never change
  // Address of the file's mapping in the recorded process. A reader that uses this very mapping
  // also sees bytes that could not be stored in the file; to other readers they are zeros.
  std::uint64_t mapped_at;
  Process process;
  std::atomic<std::uint32_t> published;    // 1: all fields above and `regions` are written
  std::atomic<std::uint32_t> reasons;      // Reason bits
  std::atomic<std::uint32_t> end_reason;   // EndReason
  std::atomic<std::uint32_t> exit_status;  // 0 to 255; valid only if exit_status_known is 1
  std::atomic<std::uint32_t> exit_status_known;
  std::atomic<std::uint32_t> runtime_version;  // as cudaRuntimeGetVersion gives it; 0: unknown
  std::atomic<std::uint32_t> driver_version;   // as cuDriverGetVersion gives it; 0: unknown
  std::atomic<std::uint32_t> cuda_seen;        // always 0: no code sets it
  std::atomic<std::uint64_t> recorded_calls;   // calls that neither Hook::calls nor shard_calls has
  std::atomic<std::uint64_t> shim_ns;  // time that the shim's own work took so far; 0: not measured
  // Frees of addresses without a record, counted only while the ledger lacks no records.
  std::atomic<std::uint64_t> unknown_frees;
  std::atomic<std::uint64_t> superseded;  // live records ended because a free was not seen
  // The module epoch: number of modules (loaded object files) that were unloaded so far. An address
  // belongs to one module only within an epoch.
  std::atomic<std::uint64_t> module_epoch;
  // Page-locked host memory: allocations that cuwarden's pool has ever served and their bytes, and
  // bytes that the pool holds now.
  std::atomic<std::uint64_t> pinned_served_count, pinned_served_bytes, pinned_held_bytes;
  // 1: the final report is on disk, but the ledger is kept: the process may go on after all (an
  // abort whose signal handler jumps away). A later CUDA call sets it to 0.
  std::atomic<std::uint32_t> report_written;
  // The number in the report's file name plus 1 (1: the name has no number); 0: no report.
  std::atomic<std::uint32_t> report_number;
  // The GrowthOperation that failed when the ledger last could not grow, and its errno. Both are 0
  // if the ledger could always grow.
  std::atomic<std::uint32_t> growth_operation, growth_error;
  // Number of stack walks that ended before the outermost frame, by the reason (stacks::Exception).
  std::atomic<std::uint64_t> stacks_cut[stack_exceptions];
  Region regions[region_count];  // by RegionId
};

// One live allocation. The writer makes `state` odd (by a release store) once the row is filled,
// and even at the end. Live rows of virtual memory and IPC may change size, address and counts.
struct Record {
  std::atomic<std::uint32_t> state;  // odd: live; even: empty, ended or being filled
  std::uint32_t group;               // row of the groups table
  std::uint64_t address;             // address or handle; with `space`, it is the record's key
  std::uint64_t bytes;               // size as the program requested it; 0: unknown
  std::uint64_t time_ns;             // allocation's time since process start, exact to some ms
  std::uint64_t context;             // CUcontext that the memory belongs to; 0: none
  // For a vmm_mapping, and for a second vmm_handle of one memory: row of the record that counts the
  // memory's bytes; 0: unknown. For all others: 0.
  std::uint64_t related;
  std::uint32_t thread;      // row of the threads table; 0: unknown
  std::uint32_t mappings;    // of a vmm_handle: live mappings and second handles of its memory
  std::uint32_t references;  // to a vmm_handle: creations and retains, less releases; IPC: openings
  Space space;
  std::uint8_t flags;  // RecordFlag bits
  std::uint16_t reserved;
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
  // For such an object: `bytes` has an equal part of what several objects took together.
  record_bytes_shared = 1u << 4,
};

// The counters of one group of allocations in one shard, from process start on. A shard belongs to
// one thread, which alone changes its counters; only shard 0 is shared by several threads.
struct Counters {
  std::atomic<std::uint64_t> allocations, allocated_bytes;
  std::atomic<std::uint64_t> frees, freed_bytes;  // frees by the program, not by ends of contexts
  std::atomic<std::uint64_t> last_ns;  // time of the last allocation since process start; 0: none
};

// All allocations with the same call stack, CUDA function, kind and device. An allocation is live
// until it is freed or released with its context; group_counts.hpp adds up the counters.
struct Group {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row
  std::uint32_t stack;               // row of the stacks table
  std::uint16_t api;                 // row of the hooks table: the function that the program called
  Kind kind;
  std::uint8_t shard;    // number of the thread's shard to which `counters` belongs
  std::int32_t device;   // CUDA ordinal; -1 for host memory
  std::uint32_t series;  // row of the group's Series; 0: there was no room for one
  std::atomic<std::uint32_t> first_shard;  // row of the group's first GroupShard; 0: none
  std::uint32_t next_in_series;            // next group of the series; 0 ends the list
  std::uint32_t peak_version;           // Series::peak_version after `at_peak_*` were last copied
  std::atomic<std::uint64_t> first_ns;  // time of the first allocation since process start; 0: none
  std::atomic<std::uint64_t> failures;  // refused memory requests, with an error to the program
  std::atomic<std::uint64_t> released_count, released_bytes;  // ended with context, not by a free
  // Counts of shard number `shard`, and of shards without room for a GroupShard; on a cache line.
  Counters counters;
  std::atomic<std::uint64_t> at_peak_count, at_peak_bytes;  // live at the series' peak, within 1 %
  std::atomic<std::uint32_t> incident;  // row of the group's latest incident; 0: none
  std::uint32_t reserved;
};
static_assert(offsetof(Group, counters) == 64 && sizeof(Group) == 128);

// The counters of a group in a shard other than Group::shard. Fills a cache line.
struct GroupShard {
  std::uint32_t group, shard;  // row of the groups table; number of the shard
  std::uint32_t next;          // row of the group's next GroupShard; 0 ends the list
  std::uint32_t reserved;
  Counters counters;
  std::uint64_t reserved2;
};
static_assert(sizeof(GroupShard) == 64);

// A call stack, innermost frame first.
struct Stack {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row
  std::uint32_t count;               // number of frames
  std::uint64_t first;               // index of the innermost frame in the frames region
  std::uint64_t hash;                // of the frames' addresses and `truncated`
  std::uint64_t module_epoch;        // Header::module_epoch when the row was made
  std::uint32_t truncated;           // 1: outer frames were cut off
  std::uint32_t reserved;
};
// A frame is an address inside the call instruction (return address - 1; the interrupted
// instruction itself for a signal frame), as mapped in the recorded process.
using Frame = std::uint64_t;

// An object file (program or library) that was loaded at an address. It gets a row for another
// address only for a new stack there. An epoch is a value of Header::module_epoch.
struct Module {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row
  // Row of the first module of this file. Modules of one file have equal code at equal offsets
  // from their bases. Copies of a file with one build id are one file, whatever their names.
  std::uint32_t file;
  std::uint32_t build_id_bytes;  // length of `build_id`; 0: the file has none
  std::uint8_t build_id[32];
  StringRef path;              // path of the file; empty: unknown
  std::uint64_t base;          // load base: address - base = address as in the file's tables
  std::uint64_t start, end;    // mapped range of addresses; `end` is exclusive
  std::uint64_t loaded_epoch;  // epoch when the row was made; the module was loaded then
  std::atomic<std::uint64_t> unloaded_epoch;  // first epoch after its unloading; 0: still loaded
};

// A thread that made a recorded call.
struct Thread {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row
  std::uint32_t tid;                 // the kernel's thread id
  char name[16];                     // as the kernel knows it; ends with a zero byte
  std::uint64_t first_ns;            // time of the first recorded call since process start
  RequestUnderWay under_way;
};

// A span of Series::width_ns in a series' timeline. `max_bytes`: highest live bytes in the span,
// those at its beginning included; 0: they did not change there, and `last_bytes` is not valid.
struct Bucket {
  std::atomic<std::uint64_t> max_bytes;
  std::atomic<std::uint64_t> last_bytes;  // live bytes at its end; not valid in the newest bucket
};
inline constexpr std::size_t bucket_count = 240;  // buckets of each series

inline constexpr std::uint8_t series_host_rss = 255;  // value of Series::kind for the process's RSS
// The totals of one kind of memory on one device (or the process's RSS), their peak and timeline.
// When time runs past the last bucket, neighbouring buckets are folded and their width doubles.
struct Series {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row
  std::int32_t device;               // CUDA ordinal; -1 for host memory
  std::uint8_t kind;                 // Kind, or series_host_rss
  std::uint8_t reserved[3];
  std::atomic<std::uint32_t> first_group;   // row of the first of the series' groups; 0: none
  std::atomic<std::uint32_t> peak_version;  // odd while the groups' `at_peak_*` are copied
  std::atomic<std::uint32_t> fold_version;  // odd while buckets are being folded
  std::atomic<std::uint64_t> live_count;    // live allocations that no shard's own counter counts
  // Live bytes, plus freed bytes that threads have not subtracted yet: at most 1 MiB or 1/64 of
  // peak_bytes, whichever is more. (The groups' counters are exact.) For series_host_rss: the RSS.
  std::atomic<std::uint64_t> live_bytes;
  std::atomic<std::uint64_t> peak_count, peak_bytes, peak_ns;  // live at the peak; time of the peak
  // Sum of the groups' at_peak_bytes, which are set anew when the peak is over 1% above this sum.
  std::atomic<std::uint64_t> copied_peak_bytes;
  std::atomic<std::uint64_t> width_ns;      // length of a bucket; the first begins at process start
  std::atomic<std::uint32_t> buckets_used;  // buckets from the first to the newest
  std::uint32_t reserved2;
  Bucket buckets[bucket_count];
  // Number of worst moments so far: moments with more locked bytes than ever before. Locked bytes
  // are free, but in slabs of the driver that also have a live allocation. This field and all below
  // are for linear device memory (Kind::device) only.
  std::atomic<std::uint32_t> worst_version;
  // Bytes that are locked now: free, but in the driver's slabs that are partly live. Threads add
  // their changes in batches, so the number may be a little wrong, even negative (two's
  // complement).
  std::atomic<std::uint64_t> slab_locked_bytes;
  std::atomic<std::uint64_t> page_rounding_bytes;  // now lost to rounding requests up to pages
  // At the latest worst moment: locked bytes, bytes lost to rounding, time since process start.
  std::atomic<std::uint64_t> worst_locked_bytes, worst_page_rounding_bytes, worst_ns;
  std::atomic<std::uint32_t> slabs_not_counted;  // 1: there was no room for some slabs' rows
  // Seqlock of the series' WorstHolder rows and of `holders_*`, `pieces_seen` and `read_*`, which
  // are set at some of the worst moments: odd while they change; 0: they were never set.
  std::atomic<std::uint32_t> holders_version;
  std::atomic<std::uint32_t> first_holder;  // row of the series' first WorstHolder; 0: none
  // 1: at `holders_ns`, allocations contradicted slab_layout.hpp, so locked bytes may be wrong.
  std::atomic<std::uint32_t> slabs_misfit;
  // Time since process start at which WorstHolders were last filled; bytes locked then; 0: never.
  std::atomic<std::uint64_t> holders_ns, holders_locked_bytes;
  std::atomic<std::uint64_t> pieces_seen;  // allocations that shared a slab page, at `holders_ns`
  // The last reading of the device's memory before `holders_ns`: its time since process start (0:
  // none), free bytes, and idle bytes of memory pools (unknown_bytes: not known).
  std::atomic<std::uint64_t> read_ns, read_free_bytes, read_memory_pool_idle_bytes;
};

// A hooked function of CUDA. Row i of the hooks table is hook i of driver/hooks.def.
struct Hook {
  std::atomic<std::uint64_t> calls;  // calls by threads without counters in shard_calls
  StringRef name;                    // the function's name
};

// A memory function of CUDA without a hook, whose address the program looked up.
struct NamedCount {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row
  std::uint32_t reserved;
  StringRef name;
  std::atomic<std::uint64_t> count;  // number of lookups
};

// A setting of cuwarden, or an environment variable of the process.
struct NamedValue {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row
  std::uint32_t source;              // 0: the setting's default; 1: the environment
  StringRef name, value;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace cuwarden::ledger
