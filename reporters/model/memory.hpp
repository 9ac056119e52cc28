// Tables of the report about how much memory there is and was, and who holds it.
// report.schema.json describes each field. A `device` is a CUDA ordinal, null for host memory; a
// `kind` is a name of core/kind.hpp.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// A CUDA device that the process used, with its last reading (cuMemGetInfo).
struct Device {
  Id device = 0;  // CUDA ordinal of the device, from 0
  Text uuid;      // UUID of the device or MIG slice; null: unknown
  Text name;      // name of the device's model; null: unknown
  // Moment of the last reading of the device: "exit" (at the end of the process) or "last_call" (at
  // the last call of the run that read the device). Null: the device was never read; time_ns,
  // total_bytes, used_bytes and free_bytes are then null, too.
  Text at;
  // The last reading of the device (cuMemGetInfo). Null: the device was never read.
  Figure time_ns;      // time of the reading, in ns since the process's start
  Figure total_bytes;  // size of the device
  Figure used_bytes;   // bytes of the device that all processes together used
  Figure free_bytes;   // free bytes of the device
  // Name of the kernel to which local_memory_kernel_thread_bytes belongs. Null: there is no such
  // kernel, or its name is unknown.
  Text local_memory_kernel;
  // Most bytes of local memory that a thread needs, among kernels launched or captured since the
  // device last had no context. Null: none needed more than its context gave each thread already: 1
  // KiB, or what cuCtxSetLimit had set. Null, too, once all contexts of the device have ended.
  Figure local_memory_kernel_thread_bytes;
  CUWARDEN_FIELDS(device, uuid, name, at, time_ns, total_bytes, used_bytes, free_bytes,
                  local_memory_kernel, local_memory_kernel_thread_bytes)
  CUWARDEN_MAY_LACK(uuid, time_ns, local_memory_kernel, local_memory_kernel_thread_bytes)
};

// A part of a device's used bytes. All parts of one account add up to the used bytes. The part
// `unexplained` is the rest; it may be negative, because live memory is counted after the reading.
struct AccountItem {
  Id device = 0;  // CUDA ordinal of the device, from 0
  // Row of the table `incidents` about the refused request at whose refusal the part was read.
  // Null: the part was read at the device's last reading.
  MaybeId incident;
  // Name of the part of the used bytes, such as "live_device", "context" or "slab_waste".
  std::string item;
  SignedFigure bytes;  // bytes of the part; below 0 only for `unexplained`
  CUWARDEN_FIELDS(device, incident, item, bytes)
};

// Another process that held memory of a device, as listed by NVML, or had the device's file open.
struct DeviceProcess {
  MaybeId device;  // CUDA ordinal of the device; null: unknown
  // Row of the table `incidents` at whose refusal NVML was asked; null: asked at the process's end.
  MaybeId incident;
  Figure pid;         // id of the other process, as NVML gives it
  Text program;       // path of the other process's program, or only its name; null: unknown
  Figure used_bytes;  // bytes of the device that the other process holds; null: NVML does not say
  // Way in which the process was found: "nvml" (NVML lists it) or "device_file" (NVML does not, but
  // it has the device's file open). Null in old reports: NVML lists it.
  Text seen_by;
  // State of the process: "alive", "zombie" (has ended, but its parent has not reaped it) or
  // "stuck" (was killed, and stays in the kernel, where no signal ends it). Null: unknown.
  Text state;
  Text user;   // name of the other process's user, or the uid in digits; null: unknown
  Text start;  // start of the other process, as ISO 8601 text in UTC; null: unknown
  // Owners that the process's cgroup names. Null: it names none, or is unknown.
  Text job;             // id of a Slurm job
  Text container;       // id of a container; for LXC its name
  Text pod;             // uid of a Kubernetes pod
  Text unit;            // unit of systemd; null if one of the others is known
  Figure parent;        // pid of the other process's parent; null: unknown
  Text parent_program;  // path of the parent process's program, or only its name; null: unknown
  CUWARDEN_FIELDS(device, incident, pid, program, used_bytes, seen_by, state, user, start, job,
                  container, pod, unit, parent, parent_program)
  CUWARDEN_MAY_LACK(device, incident, program, seen_by, state, user, start, job, container, pod,
                    unit, parent, parent_program)
};

// Sums over the whole run of all allocations of one kind on one device.
struct Total {
  std::string kind;               // kind of memory, such as "device" or "pinned" (core/kind.hpp)
  MaybeId device;                 // CUDA ordinal of the device; null for host memory
  Figure allocations;             // number of allocations that were ever made
  Figure allocated_bytes;         // bytes of all allocations that were ever made
  Figure frees;                   // number of allocations that the program has freed
  Figure failures;                // requests that the program saw fail for lack of memory
  Figure live_count, live_bytes;  // number and bytes of the live allocations at the process's end
  // Number of allocations that were live when peak_bytes were; if peak_bytes is 0, most allocations
  // that were ever live.
  Figure peak_count;
  Figure peak_bytes;  // most bytes that were live at one time
  // Time at which peak_bytes were live, in ns since the process's start; null: no bytes were ever
  // live.
  Figure peak_time_ns;
  CUWARDEN_FIELDS(kind, device, allocations, allocated_bytes, frees, failures, live_count,
                  live_bytes, peak_count, peak_bytes, peak_time_ns)
  CUWARDEN_MAY_LACK(allocated_bytes, frees)
};

// Sums of the report's leak groups.
struct Leaks {
  // Bytes and number of leaked allocations, which were not freed, not suppressed by the user, and
  // not released by the end of their context.
  Figure bytes, count;
  Figure suppressed_bytes;  // bytes not freed that the user's suppressions exclude
  // Bytes not freed that the ends of their contexts released.
  Figure released_by_context_bytes;
  CUWARDEN_FIELDS(bytes, count, suppressed_bytes, released_by_context_bytes)
};

// Live allocations of a leak group that were made in a step to which the program gave a name, such
// as a test.
struct NamedStep {
  std::string name;     // name of the step, such as "test_cache.py::test_evicts"
  Figure count, bytes;  // number of the allocations; their bytes
  CUWARDEN_FIELDS(name, count, bytes)
};

// Allocations that the program did not free, of one call stack, kind, function and device. If
// `released_by` is set, the end of their context released them, so they are no leaks.
struct LeakGroup {
  // Name of the group that is the same in two builds, in two runs and on two machines: 16
  // hexadecimal digits, a hash of the kind, the function, and the functions and modules of the
  // stack's frames. Groups that differ only in lines, offsets or devices have the same one. Null:
  // the report is older than this field.
  Text fingerprint;
  // Line of the program's own code that led to the allocations: the innermost frame of the stack
  // whose Frame::library is null, such as "/home/u/train.py:41 in step". If there is none, the
  // innermost frame outside CUDA's libraries. Null: no stack, or all frames are CUDA's.
  Text where;
  MaybeId stack;        // row of the table `stacks`; null: no stack was recorded
  std::string kind;     // kind of memory, such as "device" or "pinned" (core/kind.hpp)
  Text api;             // CUDA function that the program called; null: unknown
  MaybeId device;       // CUDA ordinal of the device; null for host memory
  Figure count, bytes;  // number of allocations that were not freed; their bytes
  // Times at which the oldest and the newest allocation that was not freed were made, in ns since
  // the process's start. Null: unknown, or the end of a context released them.
  Figure first_ns, last_ns;
  // Row of the table `modules`: file with the code of the innermost frame outside CUDA's own
  // libraries. Null: unknown.
  MaybeId module;
  // Number of allocations that this stack ever made with this function, kind and device, freed or
  // not.
  Figure allocations;
  // "growing", "burst", "steady" or "one_time", as Growth::name() judges the times at which live
  // allocations were made, and the lives of freed ones. If the program marked four steps or more,
  // quarters of the steps from `first_step` on count instead, unless the group grew on after the
  // last step. Null: the end of a context released them.
  Text growth;
  // Number of the program's step in which the oldest allocation that was not freed was made; 0:
  // before the first step. Null: the group is not judged by steps, or the end of a context
  // released the allocations.
  Figure first_step;
  // Growth in bytes per step: bytes that were not freed and were allocated after the first quarter
  // of the steps from `first_step` on, by step of the other three quarters. Null if `growth` is not
  // "growing", or the group is not judged by steps.
  Figure growth_bytes_per_step;
  // Named steps in which allocations that were not freed were made, most bytes first. Steps of one
  // name are one row. Empty: there are none, the end of a context released the allocations, or the
  // report is older than this field.
  std::vector<NamedStep> named_steps;
  // Growth in bytes per minute: bytes that were not freed and were allocated after the first
  // quarter of the time from first_ns to the process's end, by minute of the other three quarters.
  // Null if `growth` is not "growing", or is by steps alone.
  Figure growth_bytes_per_minute;
  // Number of allocations that were not freed, by the quarter of the time from first_ns to the
  // process's end in which they were made. Null: the end of a context released them, or the report
  // is older than this field.
  std::optional<std::array<Figure, 4>> count_by_quarter;
  // Result of the search for pointers (struct PointerSearch): "lost" if no pointer to one or more
  // of the allocations was found; else "interior" if only pointers into one of them, behind its
  // start, were found; else "unknown" if the search was not complete; else "reachable". Null: no
  // pointers were looked for, or the report is older than this field.
  Text reachability;
  // Number and bytes of the allocations with each of these results. Null: no pointers were looked
  // for. Allocations that were made after the search have none.
  Figure lost_count, lost_bytes;
  Figure interior_count, interior_bytes;
  Figure reachable_count, reachable_bytes;
  Figure unknown_count, unknown_bytes;
  Text released_by;  // "context": the end of their context released them; null: still live
  // True if a rule of the user's (suppression) excludes the group from the leaks.
  bool suppressed = false;
  // Address, in hexadecimal, of one of the allocations that were not freed; null: unknown.
  Text example_address;
  // Number of handles of virtual memory (cuMemCreate) that are mapped nowhere and were not
  // released. Handles that were never mapped count, too. Null for all kinds but virtual memory, if
  // the end of a context released the group, and in reports that are older than this field.
  Figure unmapped_count;
  CUWARDEN_FIELDS(fingerprint, where, stack, kind, api, device, count, bytes, first_ns, last_ns,
                  module, allocations, growth, first_step, growth_bytes_per_step, named_steps,
                  growth_bytes_per_minute, count_by_quarter, reachability, lost_count, lost_bytes,
                  interior_count, interior_bytes, reachable_count, reachable_bytes, unknown_count,
                  unknown_bytes, released_by, suppressed, example_address, unmapped_count)
  CUWARDEN_MAY_LACK(fingerprint, where, first_step, growth_bytes_per_step, named_steps,
                    growth_bytes_per_minute, count_by_quarter, reachability, lost_count, lost_bytes,
                    interior_count, interior_bytes, reachable_count, reachable_bytes, unknown_count,
                    unknown_bytes, example_address, unmapped_count)
};

// The search for pointers to live allocations in the process's memory.
struct PointerSearch {
  bool is_complete = false;  // true if all memory was looked at
  Text reason;               // sentence: reason why it is not complete; null: it is
  // Bytes of memory that were looked at, in all passes together.
  Figure scanned_bytes;
  Figure taken_ns;  // time that the search took
  CUWARDEN_FIELDS(is_complete, reason, scanned_bytes, taken_ns)
};

// A rule, from CUWARDEN_SUPPRESSIONS or `cuwarden report --suppressions`, that excludes known
// leaks.
struct Suppression {
  std::string pattern;  // text behind "leak:" in the rule
  // Number of leak groups that the rule excludes, of their allocations, and of their bytes. A group
  // that several rules match counts for the first of them in the file. Never null.
  Figure groups, count, bytes;
  CUWARDEN_FIELDS(pattern, groups, count, bytes)
};

// Number of steps or minutes until a device is full, if the growing groups go on growing as before.
struct Forecast {
  Id device = 0;  // CUDA ordinal of the device, from 0
  // Free bytes of the device, as in `devices`. If blocks of PyTorch grow: with the bytes that
  // PyTorch holds but has not handed out.
  Figure free_bytes;
  // Growth of the groups that are judged by steps of the program, in bytes per step, and number of
  // steps that the free bytes last, rounded down. Null: there are none.
  Figure growth_bytes_per_step, steps_left;
  // Growth in bytes per minute of the groups that are not judged by steps and have grown for a
  // minute, and number of minutes that the free bytes last. Null: there are none.
  Figure growth_bytes_per_minute, minutes_left;
  MaybeId stack;  // row of `stacks`: stack of the group that grows fastest; null: none was recorded
  Text where;     // `where` of that group in `leak_groups` or `framework_sites`; null as there
  CUWARDEN_FIELDS(device, free_bytes, growth_bytes_per_step, steps_left, growth_bytes_per_minute,
                  minutes_left, stack, where)
};

// Memory on one device, or of the host, that a library keeps for itself: the live allocations for
// which one file of the library asked.
struct LibraryReserve {
  std::string library;  // name of the library, such as "NCCL"
  MaybeId module;  // row of `modules`, the file of the library that holds the memory; null: unknown
  MaybeId device;  // CUDA ordinal of the device; null for host memory
  Figure count, bytes;  // number of live allocations at the process's end; their bytes
  std::string holds;    // content of the memory, such as "buffers of communicators"
  // Calls by which a program gets back the memory that the library does not use; null: none.
  Text gives_back;
  Text limited_by;  // settings and calls that limit the memory; null: none
  CUWARDEN_FIELDS(library, module, device, count, bytes, holds, gives_back, limited_by)
};

// Streams, modules or executable graphs that one call stack made, and the device memory that the
// driver took for them without being asked for memory.
struct ImplicitGroup {
  MaybeId device;    // CUDA ordinal of the device, from 0
  std::string item;  // item of the table `accounts` that has these bytes: "streams", "modules", ...
  Text api;          // CUDA function that the program called; null: unknown
  Text where;        // line of the program's own code, as in LeakGroup; null: unknown
  MaybeId stack;     // row of the table `stacks`; null: no stack was recorded
  // Number of objects (streams, modules or executable graphs) that are left, and bytes of device
  // memory that the driver took for them.
  Figure count, bytes;
  Figure released_count;  // number of objects that were destroyed, or ended with their context
  // Bytes of objects that have ended, but whose memory the driver keeps on the device (for later
  // objects, but not that of green contexts): a part of all that the driver keeps of this kind on
  // the device. The part is in proportion to the bytes that the ended objects had.
  Figure kept_bytes;
  // Times at which the first and the last of all objects were made, in ns since the process's
  // start.
  Figure first_ns, last_ns;
  // "growing", "burst", "steady" or "one_time", as in LeakGroup. Null: no object is left.
  Text growth;
  // Growth of the bytes after the first quarter of the time from first_ns to the process's end, in
  // bytes per minute; null if `growth` is not "growing", or is by steps alone.
  Figure growth_bytes_per_minute;
  // True if `bytes` is an estimate, because the memory of at least one object that is left was not
  // measured by itself. An object of which nothing is known, since it was not measured or another
  // process may have changed the memory meanwhile, adds no bytes.
  bool uncertain = false;
  // True if an object that is left has an equal part of what several took together; `uncertain` is
  // then true, too.
  bool shared = false;
  // Ids of rows of the table `stacks`, each once: the other calls whose objects have parts of the
  // same bytes. Empty: there are none, or `shared` is false.
  std::vector<Id> shared_with;
  CUWARDEN_FIELDS(device, item, api, where, stack, count, bytes, released_count, kept_bytes,
                  first_ns, last_ns, growth, growth_bytes_per_minute, uncertain, shared,
                  shared_with)
  CUWARDEN_MAY_LACK(where, kept_bytes, growth, growth_bytes_per_minute, uncertain, shared,
                    shared_with)
};

// Sums of cuwarden's own pool, of rescued requests, of meshing and of spilled allocations.
struct Pool {
  std::string mode;  // setting CUWARDEN_POOL: "off", "rescue", "on" or "auto"
  // Number and bytes of refused requests that cuwarden's rungs served after all.
  Figure rescued_count, rescued_bytes;
  // Number and bytes of requests that cuwarden's own pool served.
  Figure served_count, served_bytes;
  Figure held_bytes;      // memory that cuwarden's pool holds at the end
  Figure returned_bytes;  // memory that cuwarden's pool gave back to devices during the run
  // Pages of addresses that meshing has moved to other memory, and pages whose own memory a moved
  // page came to share. A page counts again each time, so two that come to share memory count 2.
  Figure meshed_pages;
  Figure mesh_recovered_bytes;  // device memory that became free by meshing
  Figure mesh_pause_ns;         // time for which meshing held up the program's GPU work
  // Bytes of host memory behind device allocations that are live at the end.
  Figure spilled_bytes;
  // Most bytes of host memory behind device allocations at any time; with several devices, the sum
  // of each one's most.
  Figure spilled_peak_bytes;
  // Number of allocations that ever got host memory in place of device memory.
  Figure spilled_count;
  // True if the program asked for an IPC handle of memory that has none, because the memory is the
  // pool's or was spilled.
  bool ipc_refused = false;
  CUWARDEN_FIELDS(mode, rescued_count, rescued_bytes, served_count, served_bytes, held_bytes,
                  returned_bytes, meshed_pages, mesh_recovered_bytes, mesh_pause_ns, spilled_bytes,
                  spilled_peak_bytes, spilled_count, ipc_refused)
  CUWARDEN_MAY_LACK(mode, rescued_count, rescued_bytes, served_count, served_bytes, held_bytes,
                    returned_bytes, meshed_pages, mesh_recovered_bytes, mesh_pause_ns,
                    spilled_bytes, spilled_peak_bytes, spilled_count, ipc_refused)
};

// A step that the program marked, such as an iteration of a training loop: a row of the report's
// table `steps`. Of very many steps without names, only some have a row.
struct Step {
  Figure number;       // number of the step, from 1
  Figure time_ns;      // start of the step, in ns since the process's start
  Text name;           // name that the program gave the step; null: none
  Figure name_end_ns;  // end of the named part, in ns since the process's start; null: it has none
  CUWARDEN_FIELDS(number, time_ns, name, name_end_ns)
};

// Live bytes of a kind on a device in a span of time: a row of the report's table `timeline`.
struct Bucket {
  Figure time_ns;   // begin of the span, in ns since the process's start
  Figure width_ns;  // length of the span in ns
  MaybeId device;   // CUDA ordinal of the device; null for host memory
  // Kind of memory, such as "device" (core/kind.hpp), or "host_rss" for the process's resident
  // memory. Rows of "framework_block" are parts of other kinds' rows.
  std::string kind;
  Figure max_bytes;   // most live bytes in the span
  Figure last_bytes;  // live bytes at the span's end
  CUWARDEN_FIELDS(time_ns, width_ns, device, kind, max_bytes, last_bytes)
  CUWARDEN_MAY_LACK(width_ns, device, max_bytes)
};

// A call stack that held memory at the peak: when the most bytes of a kind were live on a device.
// The figures may be of a moment with slightly fewer live bytes.
struct PeakHolder {
  MaybeId device;    // CUDA ordinal of the device; null for host memory
  std::string kind;  // kind of memory, such as "device" or "pinned" (core/kind.hpp)
  MaybeId stack;     // row of the table `stacks`; null: no stack was recorded
  // Number and bytes of this stack's allocations that were live when the most bytes of `kind` were
  // live on `device`.
  Figure count, bytes;
  // Number of allocations of `kind` on `device` that this stack ever made, freed or not.
  Figure allocations;
  // Times, in ns since the process's start, of the first and the last allocation of `kind` on
  // `device` that this stack made, freed or not.
  Figure first_ns, last_ns;
  CUWARDEN_FIELDS(device, kind, stack, count, bytes, allocations, first_ns, last_ns)
  CUWARDEN_MAY_LACK(allocations, first_ns, last_ns)
};

// A call stack that allocated many bytes of a kind on a device over the whole run, freed or not.
// The report has those that allocated most.
struct AllocationSite {
  std::string kind;        // kind of memory, such as "device" or "pinned" (core/kind.hpp)
  Text api;                // CUDA function that the program called; null: unknown
  MaybeId device;          // CUDA ordinal of the device; null for host memory
  MaybeId stack;           // row of the table `stacks`; null: no stack was recorded
  Figure allocations;      // number of allocations that were ever made
  Figure allocated_bytes;  // bytes of all allocations that were ever made
  CUWARDEN_FIELDS(kind, api, device, stack, allocations, allocated_bytes)
};

}  // namespace cuwarden::model
