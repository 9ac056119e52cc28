// The ledger's file, byte by byte: the live state of one process, mapped MAP_SHARED and written
// in place. Any reader, in any process, at any time, sees a consistent part of it.
//
//   page 0..        Header (magic, version, regions, process, counters)
//   region r        a contiguous array of fixed-size rows, or a heap of bytes (strings, frames)
//
// The file is sparse: regions lie far apart and are filled from their start. Rows never move and
// row 0 of each table is unused, so that 0 means none. A row is published by a release store to
// its `state`; a reader that finds state 0 (or, for records, an even generation) skips the row.
// Offsets are from the start of the file; integers are little-endian and fixed in width.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/ledger/format/incident_layout.hpp"
#include "runtime_hooks/ledger/format/slab_layout.hpp"
#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

inline constexpr std::uint64_t magic = 0x31'4e'45'44'52'41'57'43;  // "CWARDEN1" in memory
inline constexpr std::uint32_t layout_version = 14;

inline constexpr std::size_t stack_exceptions = 6;  // enumerators of stacks::Exception
// Greatest number of frames in a stack.
inline constexpr std::uint32_t deepest_stack = 1024;

enum class RegionId : std::uint8_t {
  records,
  groups,
  stacks,
  frames,
  strings,
  modules,
  threads,
  series,
  devices,
  hooks,
  unhooked_lookups,
  settings,
  environment,
  group_shards,
  shard_calls,  // the hooks' call counters: for each shard, calls_in_shard() entries
  incidents,
  incident_holders,
  incident_classes,
  incident_slabs,
  incident_rungs,
  slab_pages,
  worst_holders,
};
inline constexpr std::size_t region_count = 22;

// The extent of a table (or heap of bytes) in the file, and the part in use.
struct Region {
  std::uint64_t offset;          // offset of the region in the file
  std::uint64_t capacity_bytes;  // bytes that are reserved for the region
  std::uint32_t row_bytes;       // 1 for heaps of bytes, 8 for frames
  std::uint32_t reserved;
  std::atomic<std::uint64_t> used;  // rows (or bytes) handed out, the unused row 0 included
  // Bytes from the region's start that are in the file. If the disk was full, the bytes beyond are
  // in the process's memory only.
  std::atomic<std::uint64_t> file_bytes;
};

// Reasons why the ledger or the recording is incomplete; bits of Header::reasons.
enum Reason : std::uint32_t {
  reason_ledger_in_memory = 1u << 0,  // no folder would take the file: no recovery after a kill
  reason_ledger_partly_in_memory = 1u << 1,  // the disk filled up while the ledger grew
  reason_ledger_full = 1u << 2,          // a table is at its capacity: later entries are missing
  reason_recording_stopped = 1u << 3,    // a lock was not given back
  reason_superseded = 1u << 4,           // an address was handed out twice: a free was not seen
  reason_driver_out_of_sight = 1u << 5,  // a libcuda in another namespace (dlmopen): not covered
  reason_names_missing = 1u << 6,        // a table of names (of threads, settings) is at capacity
  reason_pool_not_shared = 1u << 7,      // a note: an IPC handle of the pool's memory was asked for
  reason_confined = 1u << 8,  // a thread with a seccomp filter needed more room than there was
};

// The operations by which a ledger grows; values of Header::growth_operation.
enum class GrowthOperation : std::uint32_t { none, open, allocate, map, allow_access };

// The way in which the process ended.
enum class EndReason : std::uint32_t {
  running,
  exit,
  underscore_exit,
  quick_exit,
  abort,
  signal,
  unknown,
};

// Facts about the recorded process, written before the ledger is published.
struct Process {
  std::uint32_t pid;
  std::uint32_t parent;
  std::int64_t start_realtime_ns;    // since 1970; all times in the ledger count from this moment
  std::uint64_t start_monotonic_ns;  // CLOCK_MONOTONIC at the same moment
  std::uint64_t start_ticks;         // field 22 of /proc/PID/stat: tells a reused pid
  std::uint32_t pid_namespace;  // inode of /proc/self/ns/pid, in which `pid` counts; 0: unknown
  // 1: the mapping holds a flock of the file, which the kernel drops when the mapping goes with the
  // process (or its exec). 0: the file system does not keep one, or an older writer did not ask.
  std::uint32_t lock_held;
  // Device and inode of the file that the writer made; 0 if there is no file. They tell a copy of
  // the ledger: if a copy is not locked, the process may live nevertheless.
  std::uint64_t file_device, file_inode;
  std::uint8_t boot_id[16];  // /proc/sys/kernel/random/boot_id
  StringRef host;
  StringRef program;       // /proc/self/exe
  StringRef command_line;  // arguments separated by zero bytes
  StringRef report_path;   // where the report will go, already expanded, absolute
  // The folder of the cgroup that counts the process's memory; empty: unknown. The folder's inode
  // tells it from a later cgroup of the same name. The kills are those before the ledger was made.
  StringRef memory_cgroup;
  std::uint64_t memory_cgroup_inode, memory_cgroup_oom_kills;
};

// The beginning of the file.
struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t file_bytes;  // the sparse file's size
  std::uint64_t checksum;    // header_checksum(): the fields that never change once published
  // Address of the writer's mapping. A reader in the same process also sees the bytes that could
  // not be stored in the file (Region::file_bytes); to other readers these are zeros.
  std::uint64_t mapped_at;
  Process process;
  std::atomic<std::uint32_t> published;   // 1 when all fields above are written
  std::atomic<std::uint32_t> reasons;     // Reason bits
  std::atomic<std::uint32_t> end_reason;  // EndReason
  std::atomic<std::uint32_t> exit_status;
  std::atomic<std::uint32_t> exit_status_known;
  std::atomic<std::uint32_t> runtime_version;  // as cudaRuntimeGetVersion gives it; 0 unknown
  std::atomic<std::uint32_t> driver_version;   // as cuDriverGetVersion gives it; 0 unknown
  std::atomic<std::uint32_t> cuda_seen;        // 1 once a driver hook has fired
  std::atomic<std::uint64_t> recorded_calls;
  std::atomic<std::uint64_t> shim_ns;        // time spent in the shim's own work; sampled
  std::atomic<std::uint64_t> unknown_frees;  // frees of addresses that were never recorded
  std::atomic<std::uint64_t> superseded;     // records replaced because a free was not seen
  std::atomic<std::uint64_t> module_epoch;   // bumped by each dlclose that unloads something
  // Page-locked memory that the pool has ever served, and bytes that it holds of the driver's for
  // that.
  std::atomic<std::uint64_t> pinned_served_count, pinned_served_bytes, pinned_held_bytes;
  // 1: the report of the end in `end_reason` is on disk. The ledger is kept, since this end may not
  // come (an abort whose signal handler jumps away). A later CUDA call sets it to 0.
  std::atomic<std::uint32_t> report_written;
  // The number in the file name of the process's report, plus 1; 0: there is no report yet.
  std::atomic<std::uint32_t> report_number;
  // The operation that the kernel refused when a region last could not grow in the file, and its
  // errno. Both are 0 if none was refused.
  std::atomic<std::uint32_t> growth_operation, growth_error;
  // Number of stacks that were not walked to their end, by stacks::Exception. A stack that is
  // recognised later is not counted again.
  std::atomic<std::uint64_t> stacks_cut[stack_exceptions];
  Region regions[region_count];
};

// One live allocation. `state` is a generation: odd = live, even = empty or being changed. The
// writer makes it even before it changes anything and odd (by a release store) afterwards.
struct Record {
  std::atomic<std::uint32_t> state;  // odd: live
  std::uint32_t group;               // row of the groups table
  std::uint64_t address;             // address or handle; with `space`, it is the record's key
  std::uint64_t bytes;               // size as the program requested it
  std::uint64_t time_ns;             // since process start, as of the kernel's last tick
  std::uint64_t context;             // CUcontext that the memory belongs to; 0: none
  std::uint64_t related;     // vmm_mapping: record of the handle; stream-ordered: the memory pool
  std::uint32_t thread;      // row of the threads table
  std::uint32_t mappings;    // vmm_handle: live mappings
  std::uint32_t references;  // vmm_handle: Create + Import + Retain - Release; IPC: openings
  Space space;
  std::uint8_t flags;  // RecordFlag
  std::uint16_t reserved;
};
static_assert(sizeof(Record) == 64);

// Bits of Record::flags.
enum RecordFlag : std::uint8_t {
  record_owned_by_context = 1u << 0,  // ends with its context
  record_counts_no_bytes = 1u << 1,   // bookkeeping (mappings): not an allocation of its own
  record_in_pool = 1u << 2,  // served by cuwarden's pool, so it is in no slab of the driver's
};

// The counters of one shard. Only the thread that has the shard changes them.
struct Counters {
  std::atomic<std::uint64_t> allocations, allocated_bytes;
  std::atomic<std::uint64_t> frees, freed_bytes;
  std::atomic<std::uint64_t> last_ns;  // time of the last allocation
};

// All allocations of one kind, by one API, on one device, from one stack. Its live allocations are
// those neither freed nor released with their context; group_counts.hpp adds up the counters.
struct Group {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::uint32_t stack;               // row of the stacks table
  std::uint16_t api;                 // row of the hooks table: the outermost API
  Kind kind;
  std::uint8_t shard;    // number of the shard to which `counters` belongs
  std::int32_t device;   // -1 for host memory
  std::uint32_t series;  // row; 0: there was no room for it
  std::atomic<std::uint32_t>
      first_shard;                      // first row of the list of other shards' counters; 0: none
  std::uint32_t next_in_series;         // groups of one series form a list; 0 ends it
  std::uint32_t peak_version;           // Series::peak_version that `at_peak_*` belong to
  std::atomic<std::uint64_t> first_ns;  // first allocation
  std::atomic<std::uint64_t> failures;
  std::atomic<std::uint64_t> released_count, released_bytes;
  // These lie in a cache line of their own, which is changed all the time by the group's shard
  // only.
  Counters counters;
  std::atomic<std::uint64_t> at_peak_count, at_peak_bytes;  // live when the series was at its peak
  std::atomic<std::uint32_t> incident;  // row; 0: no request was refused, or there was no room
  std::uint32_t reserved;
};
static_assert(offsetof(Group, counters) == 64 && sizeof(Group) == 128);

// The counters of a group in a shard other than the group's own. Fills a cache line.
struct GroupShard {
  std::uint32_t group, shard;
  std::uint32_t next;  // row; 0 ends the list
  std::uint32_t reserved;
  Counters counters;
  std::uint64_t reserved2;
};
static_assert(sizeof(GroupShard) == 64);

// A call stack, innermost first; its frames are `count` addresses at frames[first].
struct Stack {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::uint32_t count;
  std::uint64_t first;  // index into the frames region (8 bytes each)
  std::uint64_t hash;
  std::uint64_t module_epoch;  // epoch in which the frames' modules were loaded
  std::uint32_t truncated;     // 1: deeper frames were cut off
  std::uint32_t reserved;
};
// A frame is an address inside the call instruction (return address - 1; the interrupted
// instruction itself for a signal frame), as mapped in this process.
using Frame = std::uint64_t;

// An object file that was loaded at an address. Each address at which it was loaded has a row.
struct Module {
  std::atomic<std::uint32_t> state;  // 1 = published
  // Row of the first module of this file. Modules of one file have the same code at the same offset
  // from their bases. Copies of a file with one build id are one file, whatever their names.
  std::uint32_t file;
  std::uint32_t build_id_bytes;
  std::uint8_t build_id[32];
  StringRef path;
  std::uint64_t base;          // load base: address - base = offset in the file's terms
  std::uint64_t start, end;    // mapped range
  std::uint64_t loaded_epoch;  // first epoch in which it is loaded at this address
  std::atomic<std::uint64_t> unloaded_epoch;  // first epoch in which it is not; 0: still loaded
};

// A thread that made a recorded call. `tid`: the kernel's thread id.
struct Thread {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::uint32_t tid;
  char name[16];
  std::uint64_t first_ns;
};

// The highest and the last value in a span of time. The highest includes the value at the
// beginning. So if max_bytes is 0 although the value at the beginning is not, the value did not
// change in this span.
struct Bucket {
  std::atomic<std::uint64_t> max_bytes;
  std::atomic<std::uint64_t> last_bytes;  // in the newest bucket, Series::live_bytes counts instead
};
inline constexpr std::size_t bucket_count = 240;

// The totals of one kind on one device, and their timeline, which the groups' counters do not give.
// When time runs past the last bucket, neighbouring buckets are folded together and the width
// doubles, so that a series never grows.
inline constexpr std::uint8_t series_host_rss = 255;  // value of Series::kind for the process's RSS
struct Series {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::int32_t device;
  std::uint8_t kind;  // Kind, or series_host_rss
  std::uint8_t reserved[3];
  std::atomic<std::uint32_t> first_group;
  std::atomic<std::uint32_t> peak_version;  // odd while the peak is being copied
  std::atomic<std::uint32_t> fold_version;  // odd while buckets are being folded
  std::atomic<std::uint64_t> live_count;    // live allocations that no shard's own counter counts
  std::atomic<std::uint64_t> live_bytes;  // includes credits (live_bytes.hpp); the groups are exact
  std::atomic<std::uint64_t> peak_count, peak_bytes, peak_ns;
  std::atomic<std::uint64_t> copied_peak_bytes;  // the peak to which the groups' at_peak_* belong
  std::atomic<std::uint64_t> width_ns;
  std::atomic<std::uint32_t> buckets_used;
  std::uint32_t reserved2;
  Bucket buckets[bucket_count];
  // The worst moment of linear memory: that with the most locked bytes (slab_pages.hpp). When
  // locked bytes rise above it, the moment and the version change. These fields lie in another
  // cache line than the counters, which change all the time.
  std::atomic<std::uint32_t> worst_version;
  // present value; may be too high by changes that shards have not passed on yet
  std::atomic<std::uint64_t> slab_locked_bytes;
  std::atomic<std::uint64_t> page_rounding_bytes;
  std::atomic<std::uint64_t> worst_locked_bytes, worst_page_rounding_bytes, worst_ns;
  std::atomic<std::uint32_t> slabs_not_counted;  // 1: there was no room for some slabs
  // The groups that lock the slabs, copied at the worst moment or a little before; 0: not copied
  // yet.
  std::atomic<std::uint32_t> holders_version;  // odd while they are being copied
  std::atomic<std::uint32_t> first_holder;     // first of `worst_holder_count` rows
  // 1: when the holders were last copied, addresses did not fit the known layout of slabs.
  std::atomic<std::uint32_t> slabs_misfit;
  std::atomic<std::uint64_t> holders_ns, holders_locked_bytes;
  // From the same copy: the number of pieces that shared a page with another one, as slabs' pieces
  // do; and the device's last reading, at `read_ns`. 0: nothing yet.
  std::atomic<std::uint64_t> pieces_seen;
  std::atomic<std::uint64_t> read_ns, read_free_bytes, read_memory_pool_idle_bytes;
};

enum class ReadingAt : std::uint32_t { none, last_call, exit };
// A device that the process used, and its last reading.
struct Device {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::int32_t ordinal;
  std::uint8_t uuid[16];
  char name[128];
  std::atomic<std::uint32_t> version;  // seqlock over the reading: odd while it changes
  std::atomic<std::uint32_t> at;       // ReadingAt
  std::atomic<std::uint64_t> time_ns, total_bytes, free_bytes;
  // Bytes that the process's memory pools and graphs keep unused; or unknown_bytes.
  std::atomic<std::uint64_t> memory_pool_idle_bytes;
  std::atomic<std::uint64_t> other_processes_bytes;  // when last asked for; 0: unknown
  // Host memory behind live device allocations: now and at its peak, and the number of allocations
  // that were ever spilled. spilled_in_stream_order_bytes is the present part in stream-ordered
  // ones.
  std::atomic<std::uint64_t> spilled_bytes, spilled_peak_bytes, spilled_count;
  std::atomic<std::uint64_t> spilled_in_stream_order_bytes;
  // The pool (pool/arena.hpp) when the device was read: bytes that it holds of the device, the part
  // in live allocations, and totals of its work so far.
  std::atomic<std::uint64_t> arena_held_bytes, arena_live_bytes;
  std::atomic<std::uint64_t> arena_served_count, arena_served_bytes, arena_returned_bytes;
  std::atomic<std::uint64_t> arena_meshed_pages, arena_meshed_bytes, arena_pause_ns;
  // Memory that calls took without being asked for memory, as far as it was measured; guarded by
  // `version`. The first context's memory cannot be told from that of other processes: the first
  // number has both, without memory that this process had recorded by then. The others are
  // differences.
  std::atomic<std::uint64_t> used_after_first_context_bytes;  // 0: not measured
  std::atomic<std::uint64_t> context_bytes;                   // taken by further contexts
  std::atomic<std::uint64_t> module_bytes, local_memory_bytes, heap_bytes, stream_bytes;
  // Bytes of contexts that the driver gave back after a refusal; a later launch takes them again.
  std::atomic<std::uint64_t> lent_first_context_bytes, lent_context_bytes;
  // Local memory for one thread of the kernel that needs most; 0: none needs more than there is.
  std::atomic<std::uint64_t> largest_local_bytes;
  StringRef largest_local_kernel;  // that kernel's name, as the driver gives it
};

// A hooked function. Its calls by threads with a shard are in RegionId::shard_calls.
struct Hook {
  std::atomic<std::uint64_t> calls;
  StringRef name;
};

struct NamedCount {                  // a lookup that was answered with an unhooked memory function
  std::atomic<std::uint32_t> state;  // 1 = published
  std::uint32_t reserved;
  StringRef name;
  std::atomic<std::uint64_t> count;
};

struct NamedValue {                  // settings and environment
  std::atomic<std::uint32_t> state;  // 1 = published
  std::uint32_t source;              // settings: 0 default, 1 environment
  StringRef name, value;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace cuwarden::ledger
