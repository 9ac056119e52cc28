// The part of the ledger's layout that describes incidents: requests that CUDA refused for lack of
// memory, and the state of device and host at the moment of the refusal.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

// Value of a number in the ledger that is not known, be it a number of bytes or another one.
inline constexpr std::uint64_t unknown_value = UINT64_MAX;

// The thing that a refused call asked for. All but `memory` take device memory that the call does
// not ask for.
enum class Asked : std::uint8_t {
  memory,   // the call asked for memory: an allocation
  context,  // the call asked for a context
  module,   // the call loaded code
  launch,   // the call launched a kernel
  graph,    // the call instantiated or launched a graph
  stream,   // the call asked for a stream
  limit,    // the call asked for a larger limit (cuCtxSetLimit)
  texture,  // the call asked for a texture or surface object
  copy      // the call copied or filled memory on the device
};
inline constexpr std::uint8_t asked_count = 9;  // number of enumerators of Asked

// Facts about the moment of a refusal; indices into Incident::facts. A fact that is not known has
// the value unknown_value. The enumerators' numbers are part of the ledger's layout.
enum class Fact : std::uint8_t {
#define FACT(name) name,
#define FACT_AS(name, word) name,
#include "runtime_hooks/ledger/format/facts.def"
};
// Number of enumerators of Fact.
inline constexpr std::size_t fact_count =
    static_cast<std::size_t>(Fact::pytorch_largest_free_bytes) + 1;
inline constexpr std::uint64_t no_limit = UINT64_MAX - 1;  // value of a limit that is not set

// The rungs: the attempts to serve a request that the driver has refused. retry asks the driver
// again. The next ones make room first, and then ask again: synchronise waits for pending frees;
// trim gives back unused memory of CUDA's memory pools; reclaim calls the program's callbacks that
// empty caches; give_back gives back unused memory of cuwarden's pool; mesh lets pages of that pool
// share memory; wait waits until other processes free memory. spill, the last one, makes no room:
// it serves the request with host memory for the part that the device lacks. Reports call give_back
// `pool`.
enum class Rung : std::uint8_t { retry, synchronise, trim, reclaim, give_back, mesh, wait, spill };
inline constexpr std::size_t rung_count = 8;  // number of enumerators of Rung
// The outcome of one rung (an attempt to serve a refused request).
enum class RungOutcome : std::uint8_t {
  served,         // the request has its memory
  no_memory,      // memory was still lacking: the device's or, for `spill`, the host's
  nothing_to_do,  // the rung found nothing that it could free or use
  timed_out,      // the rung's time ended before there was memory
  other_error,    // the repeated request failed with another error than a lack of memory
  unsafe,         // the rung was not tried, or not wholly, since it could do harm, as in a capture
  failed,         // the rung's own work failed, such as a reclaimer that threw
  under_way,      // the rung has begun and not ended
};
inline constexpr std::uint8_t rung_outcome_count = 8;  // number of enumerators of RungOutcome
// The reason for which a rung (an attempt to serve a refused request) is left out.
enum class LeftOut : std::uint8_t {
  none,            // the rung was tried, or the rescue ended before the rung's turn
  rescues_off,     // CUWARDEN_POOL=off turns all rungs off
  turned_off,      // a setting of this rung turns it off
  nothing_there,   // cuwarden's pool has no memory to work with, or there is no reclaimer
  asks_again,      // the request is of a caching allocator, which repeats it before it gives up
  too_large,       // the request is larger than the whole device
  too_small,       // the driver serves such small requests from slabs, which spilling cannot
  own_memory,      // beside this process's own memory the device has no room for the request
  much_is_free,    // the call failed although much memory is free, so more would not help
  in_vain_before,  // an equal attempt to serve a request was in vain shortly before
  host_memory,     // host memory was requested, for which the rung does nothing
  other_device,    // the request's device is not that of the thread's current context
  drivers_memory,  // only the driver can serve this kind of memory
  no_allocation,   // the call is no allocation, and spilling serves allocations only
  memory_pool,     // the stream-ordered request's memory pool or context does not allow spilling
  not_supported,   // the driver, or the way in which the program reaches it, does not allow it
  confined,        // a seccomp filter of the program restricts the thread
  in_reclaimer,    // a reclaimer (callback that empties a cache) made the request
  compute_mode,    // the device's compute mode refused the request, so more memory would not help
  not_repeated,    // cuwarden repeats no call of this function
  page_cache,      // the device uses the host's memory, and the page cache holds what is lacking
};
inline constexpr std::uint8_t left_out_count = 21;  // number of enumerators of LeftOut

// A thread's refused request while a rung (an attempt to serve it) is under way.
struct RequestUnderWay {
  std::atomic<std::uint32_t> incident;  // row of the request's incident; 0: no rung is being tried
  std::atomic<Rung> rung;               // the rung that is being tried, if `incident` is not 0
  std::uint8_t reserved[3];
  std::atomic<std::uint64_t> since_ns;  // time at which the rung began, since process start
  std::atomic<std::uint64_t> bytes;     // size of the request; 0: unknown
};

// A request that was refused for lack of memory, or a context that the compute mode refused. Later
// refusals at the same call site (group) are counted in the site's latest row. The site gets a new
// row in two cases only. Either rungs have served all requests of the latest row, and no rung
// serves the next one. Or rungs or repeated calls have served them all, and a later request is
// refused at least 10 s after the row's first refusal. The 10 s become four times as long with each
// row.
struct Incident {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  // Row in the groups table of the group (call site) that made the request; never 0.
  std::uint32_t group;
  std::uint32_t thread;   // row in the threads table of the thread that asked; 0: unknown
  std::int32_t result;    // CUresult with which the driver refused the request
  std::uint64_t time_ns;  // time of the first refusal, since process start
  // Bytes that the first refused call requested or, if it names no size, needed; 0: unknown.
  std::uint64_t bytes;
  Asked asked;  // the thing that the refused call asked for
  std::uint8_t reserved[3];
  std::uint32_t number;                // position among the incidents of its group, from 1
  std::atomic<std::uint64_t> repeats;  // number of refusals that the row counts after its first one
  // Time (ns since process start) and size (bytes) of the last refusal that the row counts, which
  // is the first one if `repeats` is 0.
  std::atomic<std::uint64_t> last_ns, last_bytes;
  // Number of refusals that the program saw as an error, and after which the thread repeated the
  // request (equal size, device, function and kind) within 10 s until it was served.
  std::atomic<std::uint64_t> recovered;
  // Number of refused requests that no rung served, so that the program got the error. A refused
  // request counts neither here nor in `rescued` as long as rungs are being tried for it.
  std::atomic<std::uint64_t> failed;
  // Number of refused requests that each rung has served, so that the program saw no refusal; by
  // Rung.
  std::atomic<std::uint64_t> rescued[rung_count];
  std::atomic<std::uint64_t> rescued_bytes;  // bytes of all requests that rungs have served
  // Reasons for which rungs (attempts to serve the request) were left out at the incident's first
  // refusal; by Rung.
  std::atomic<LeftOut> left_out[rung_count];
  // Bytes of this process's live allocations, by Kind, at the incident's first refusal: on the
  // request's device, or on the host for a request of host memory.
  std::uint64_t live_bytes[kind_count];
  // Number of the live allocations whose bytes `live_bytes` has, by Kind.
  std::uint64_t live_count[kind_count];
  // Facts about the device and the host at the first refusal, by Fact; unknown_value: not known.
  std::atomic<std::uint64_t> facts[fact_count];
};

// A group of this process's allocations that held much memory on the device of a refused request
// (or on the host) at the moment of the incident's first refusal.
struct IncidentHolder {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t incident;            // the incident's row in the incidents table
  std::uint32_t group;               // row of the group of allocations in the groups table; never 0
  std::uint32_t reserved;
  std::uint64_t count, bytes;  // number of the group's live allocations; their bytes
  // Rate at which the group's live bytes grew in the last three quarters of the time since its
  // oldest live allocation. unknown_value: they do not grow steadily, or the rate was not
  // determined.
  std::atomic<std::uint64_t> growth_bytes_per_minute;
  // The group's part of the locked bytes: these are free, but in slabs of the driver with live
  // allocations. A slab's locked bytes are divided equally among its live allocations.
  // unknown_value: 0 bytes, not determined, or not among the four largest parts.
  std::atomic<std::uint64_t> slab_locked_bytes;
};

// The way in which another process was found to use the device of a refused request.
enum class SeenBy : std::uint8_t {
  nvml,         // NVML lists the process as a holder of memory
  device_file,  // NVML does not list the process, but it has the device's file open
};
inline constexpr std::uint8_t seen_by_count = 2;  // number of enumerators of SeenBy
// The state of another process that used the device of a refused request, as /proc tells it.
enum class RunState : std::uint8_t {
  unknown,  // /proc does not tell the process's state
  alive,    // the process runs, sleeps or is stopped
  zombie,   // the process has ended, and its parent has not reaped it (Z)
  // The process was sent SIGKILL, but a thread of it stays in the kernel, where no signal ends the
  // thread (D).
  stuck,
};
inline constexpr std::uint8_t run_state_count = 4;  // number of enumerators of RunState

// Another process that used the device of a refused request at the moment of the incident's first
// refusal.
struct IncidentProcess {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t incident;            // the incident's row in the incidents table
  std::uint32_t pid, parent;         // pid of the process and of its parent; parent 0: unknown
  // Bytes of the device that the process uses; unknown_value: not known.
  std::uint64_t bytes;
  std::int64_t start_realtime_ns;  // start of the process, since 1970; 0: unknown
  SeenBy seen_by;                  // the way in which the process was found to use the device
  // The process's state at the incident's first refusal: alive, a zombie, or stuck in the kernel
  // after a SIGKILL. RunState::unknown: it could not be read.
  RunState run_state;
  std::uint8_t is_of_another_user;  // 1: another uid than the ledger process's; 0: equal or unknown
  std::uint8_t reserved[5];
  // Path of the program's file, or only its name of at most 15 characters, for the process and for
  // its parent; empty: unknown.
  StringRef program, parent_program;
  StringRef user;  // name of the process's user, or the uid in digits; empty: unknown
  StringRef job;   // id of the Slurm job that the process's cgroup names; empty: none
  // Id of the container (for LXC, its name) that the process's cgroup names; empty: none.
  StringRef container;
  StringRef pod;   // uid of the Kubernetes pod that the process's cgroup names; empty: none
  StringRef unit;  // systemd unit that the process's cgroup names; empty: none
};

// The driver's slabs of one size class, on the device of a refused request, at the moment of the
// incident's first refusal. A slab (2 MiB) belongs to the class in which most of its live bytes
// are.
struct IncidentClass {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t incident;            // the incident's row in the incidents table
  std::uint64_t class_bytes;         // largest allocation of the class in bytes, a power of two
  std::uint64_t slab_count;          // number of slabs of this size class
  // Number and requested bytes of the live allocations in the class's slabs.
  std::uint64_t live_count, live_bytes;
};

// A rung (a way to serve a refused request) that was tried at an incident's first refusal.
struct IncidentRung {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t incident;            // the incident's row in the incidents table
  std::uint64_t duration_ns;         // time that the rung has taken so far
  std::uint32_t order;               // position among the incident's rungs, from 1
  Rung rung;                         // the rung that was tried
  RungOutcome outcome;               // the rung's outcome; `under_way` until it has ended
  std::uint8_t reserved[2];
  // For Rung::reclaim, name of the reclaimer (callback). Empty for other rungs, and if the ledger
  // has no room for texts.
  StringRef name;
};

// Most groups of allocations that are kept for a slab of the driver at a refusal.
inline constexpr std::size_t slab_group_count = 4;

// One of the driver's slabs (2 MiB units of device memory) at the moment of an incident's first
// refusal. Either all slabs of the request's device have rows or, for lack of room, none has.
struct IncidentSlab {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t incident;            // the incident's row in the incidents table
  std::uint64_t address;             // address of the slab's first byte
  // Number and requested bytes of the live allocations in the slab.
  std::uint64_t live_count, live_bytes;
  // Rows in the groups table of the groups with the most live allocations in the slab, most first;
  // 0: there are no more groups.
  std::uint32_t groups[slab_group_count];
};

}  // namespace cuwarden::ledger
