// Tables of the report about how much memory there is and was, and what holds it.
// report.schema.json describes each field. A `device` is a CUDA ordinal, null for host memory; a
// `kind` is a name of runtime_hooks/core/kind.hpp.
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
  // Moment of the last reading of the device by cuMemGetInfo: "exit" (at the end of the process) or
  // "last_call" (at the last CUDA call at which cuwarden read the device). Null: the device was
  // never read; time_ns, total_bytes, used_bytes and free_bytes are then null, too.
  Text at;
  Figure time_ns;      // time of the last reading, in ns since the process's start; null: unknown
  Figure total_bytes;  // size of the device; null: never read
  Figure used_bytes;   // bytes used by all processes on the device (total - free); null: never read
  // Free bytes at the last reading, corrected as by free_bytes_now(); null: never read.
  Figure free_bytes;
  // Name of the kernel that needs local_memory_kernel_thread_bytes for each thread. Null: there is
  // no such kernel, or its name is unknown.
  Text local_memory_kernel;
  // Most bytes of local memory that a thread needs, among kernels that were launched or captured
  // since the device last had no context. Null: no kernel needs more than every thread has (1 KiB,
  // or the limit of cuCtxSetLimit), or all contexts of the device have ended.
  Figure local_memory_kernel_thread_bytes;
  CUWARDEN_FIELDS(device, uuid, name, at, time_ns, total_bytes, used_bytes, free_bytes,
                  local_memory_kernel, local_memory_kernel_thread_bytes)
  CUWARDEN_MAY_LACK(uuid, time_ns, local_memory_kernel, local_memory_kernel_thread_bytes)
};

// A part of a device's used bytes, at the process's end or at a refused request. The parts add up
// to the used bytes. The rest, `unexplained`, is below 0 if live memory grew after the reading.
struct AccountItem {
  Id device = 0;  // CUDA ordinal of the device, from 0
  // Id in the table `incidents` of the refused request at which the part was found. Null: the part
  // is of the process's end, where the used bytes are Device::used_bytes.
  MaybeId incident;
  std::string item;    // name of the part, such as "live_device", "context" or "slab_waste"
  SignedFigure bytes;  // bytes of the part; below 0 only for `unexplained`
  CUWARDEN_FIELDS(device, incident, item, bytes)
};

// Another process that used a device: NVML listed it, or it had the device's file open.
struct DeviceProcess {
  MaybeId device;  // CUDA ordinal of the device; null: unknown
  // Id in the table `incidents` of the refused request at which the other processes were listed.
  // Null: they were listed at this process's end.
  MaybeId incident;
  Figure pid;         // id of the other process, by NVML; by /proc if seen_by is "device_file"
  Text program;       // path of the other process's program, or only its name; null: unknown
  Figure used_bytes;  // bytes of the device that the other process holds; null: unknown
  // Way in which the other process was found: "nvml" (NVML lists it) or "device_file" (NVML does
  // not, but it has the device's file open). Null in old reports: NVML lists it.
  Text seen_by;
  // State of the other process: "alive", "zombie" (has ended, but its parent has not reaped it) or
  // "stuck" (was killed, and stays in the kernel, where no signal ends it). Null: unknown.
  Text state;
  Text user;   // name of the other process's user, or the uid in digits; null: unknown
  Text start;  // start of the other process, as ISO 8601 text in UTC; null: unknown
  Text job;    // id of the Slurm job in the other process's cgroup path; null: none, or unknown
  // Container's id (for LXC: name) in the other process's cgroup path; null: none, or unknown.
  Text container;
  Text pod;  // uid of the Kubernetes pod in the other process's cgroup path; null: none, or unknown
  // Unit of systemd in the other process's cgroup path. Null: none, unknown, or the path names a
  // job, container or pod.
  Text unit;
  Figure parent;        // pid of the other process's parent; null: unknown
  Text parent_program;  // path of the parent process's program, or only its name; null: unknown
  CUWARDEN_FIELDS(device, incident, pid, program, used_bytes, seen_by, state, user, start, job,
                  container, pod, unit, parent, parent_program)
  CUWARDEN_MAY_LACK(device, incident, program, seen_by, state, user, start, job, container, pod,
                    unit, parent, parent_program)
};

// Sums over the whole run of all allocations of one kind on one device.
struct Total {
  std::string kind;               // kind of memory, such as "device" or "pinned"
  MaybeId device;                 // CUDA ordinal of the device; null for host memory
  Figure allocations;             // number of allocations of `kind` on `device`, freed or not
  Figure allocated_bytes;         // bytes of all allocations of `kind` on `device`, freed or not
  Figure frees;                   // number of allocations of `kind` on `device` that were freed
  Figure failures;                // number of requests that the program saw fail for lack of memory
  Figure live_count, live_bytes;  // number and bytes of the live allocations at the process's end
  // Number of allocations that were live at peak_time_ns. If peak_bytes is 0: the most allocations
  // that were live at one time.
  Figure peak_count;
  Figure peak_bytes;  // most bytes of `kind` that were live on `device` at one time
  // Time at which peak_bytes were live, in ns since the process's start; null: peak_bytes is 0.
  Figure peak_time_ns;
  CUWARDEN_FIELDS(kind, device, allocations, allocated_bytes, frees, failures, live_count,
                  live_bytes, peak_count, peak_bytes, peak_time_ns)
  CUWARDEN_MAY_LACK(allocated_bytes, frees)
};

// Sums over the report's leak groups (struct LeakGroup).
struct Leaks {
  // Bytes and number of leaked allocations: neither freed, nor suppressed by the user, nor released
  // by the end of their context.
  Figure bytes, count;
  Figure suppressed_bytes;  // bytes of the groups that the user's suppressions exclude
  // Bytes that the program did not free, but that the ends of their contexts released.
  Figure released_by_context_bytes;
  CUWARDEN_FIELDS(bytes, count, suppressed_bytes, released_by_context_bytes)
};

// Allocations of a leak that were not freed and were made in steps of one name. The program gives
// the name, for example that of a test (cuwarden_named_step()).
struct NamedStep {
  std::string name;     // name of the step, such as "test_cache.py::test_evicts"
  Figure count, bytes;  // number of allocations made in the step and not freed; their bytes
  CUWARDEN_FIELDS(name, count, bytes)
};

// A group of allocations of one call stack, kind, function and device that the program did not
// free. They are no leaks if the end of their context released them (`released_by`).
struct LeakGroup {
  // Name of the group that is the same in two builds, in two runs and on two machines: 16
  // hexadecimal digits. It is a hash of the kind, the function, and the functions and modules of
  // the stack's frames. Groups that differ only in lines, offsets or devices have equal
  // fingerprints. Null: the report is older than this field.
  Text fingerprint;
  // Line of the program's own code that led to the allocations, such as "/home/u/train.py:41 in
  // step". If all frames have a Frame::library, an operation of PyTorch's backward pass, or else
  // the innermost frame outside CUDA's libraries. Null: no stack, or all frames are CUDA's.
  Text where;
  MaybeId stack;        // id of the call stack in the table `stacks`; null: no stack was recorded
  std::string kind;     // kind of memory, such as "device" or "pinned"
  Text api;             // CUDA function that the program called for the allocations; null: unknown
  MaybeId device;       // CUDA ordinal of the device; null for host memory
  Figure count, bytes;  // number of allocations that were not freed; their bytes
  // Times at which the oldest and the newest of the group's live allocations were made, in ns since
  // the process's start. Null: unknown, or the end of a context released the allocations.
  Figure first_ns, last_ns;
  // Id in the table `modules` of the file with the code of the innermost frame outside CUDA's own
  // libraries. Null: unknown.
  MaybeId module;
  Figure allocations;  // number of allocations that the group ever made, freed or not
  // Growth of the group. Survivors are live allocations older than 1.5 times the longest life of a
  // freed one. "growing": survivors were made in many parts of the run, until near its end.
  // "burst": eight survivors or more were made, in a part of the run. "steady": as many allocations
  // were freed as are live, and at most half of the live ones are survivors. "one_time": others. If
  // the program marked four steps or more, and the group did not grow on after the last one, steps
  // are judged instead of times. Null: the end of a context released the allocations.
  Text growth;
  // Number of survivors by which `growth` is judged, and time at which the newest was made, in ns
  // since the process's start. A few late ones of a burst do not count. Null as `growth`, or in an
  // older report. The time is also null if no survivor counts, or if steps are judged.
  Figure survivors, last_survivor_ns;
  // Number of the program's step in which the group's oldest live allocation was made; 0: before
  // the first step. Null: `growth` was judged by times, or the end of a context released the group.
  Figure first_step;
  // Growth in bytes per step: bytes of the group's live allocations that were made in the last
  // three quarters of the steps from `first_step` on, divided by the number of those steps. Null:
  // `growth` is not "growing", or was judged by times.
  Figure growth_bytes_per_step;
  // Named steps in which the group's live allocations were made, most bytes first. Steps of one
  // name are one row. Empty: none, the end of a context released the group, or an older report.
  std::vector<NamedStep> named_steps;
  // Growth in bytes per minute: bytes of the group's live allocations that were made in the last
  // three quarters of the growth's time, divided by the minutes of those quarters. This time runs
  // from first_ns to the process's end, or to the first failed request if no live allocation was
  // made after it. Null: `growth` is not "growing", or only the steps show growth.
  Figure growth_bytes_per_minute;
  // Number of the group's live allocations that were made in each quarter of that time. Null: the
  // end of a context released them, or the report is older than this field.
  std::optional<std::array<Figure, 4>> count_by_quarter;
  // Result of the search for pointers to the group's live allocations (struct PointerSearch).
  // "lost": no pointer to at least one of them was found. "interior": none is lost, but one has
  // only pointers into its middle. "unknown": neither holds, and the search left one open.
  // "reachable": pointers to all were found. Allocations made later do not count. Null: no search.
  Text reachability;
  // Number and bytes of allocations to which the search found no pointer (lost), only pointers
  // behind their start (interior), or one to their start (reachable), and of those that it left
  // open (unknown). Null: it judged none of the group, or the end of a context released the group.
  Figure lost_count, lost_bytes, interior_count, interior_bytes;
  Figure reachable_count, reachable_bytes, unknown_count, unknown_bytes;
  Text released_by;         // "context": the end of their context released them; null: still live
  bool suppressed = false;  // true if a suppression (a rule of the user's) excludes the group
  Text example_address;     // address, in hexadecimal, of one of the group's live allocations
  // Number of handles of virtual memory (cuMemCreate) that are neither released nor mapped. Null:
  // unknown, another kind of memory, the end of a context released the group, or an older report.
  Figure unmapped_count;
  CUWARDEN_FIELDS(fingerprint, where, stack, kind, api, device, count, bytes, first_ns, last_ns,
                  module, allocations, growth, survivors, last_survivor_ns, first_step,
                  growth_bytes_per_step, named_steps, growth_bytes_per_minute, count_by_quarter,
                  reachability, lost_count, lost_bytes, interior_count, interior_bytes,
                  reachable_count, reachable_bytes, unknown_count, unknown_bytes, released_by,
                  suppressed, example_address, unmapped_count)
  CUWARDEN_MAY_LACK(fingerprint, where, survivors, last_survivor_ns, first_step,
                    growth_bytes_per_step, named_steps, growth_bytes_per_minute, count_by_quarter,
                    reachability, lost_count, lost_bytes, interior_count, interior_bytes,
                    reachable_count, reachable_bytes, unknown_count, unknown_bytes, example_address,
                    unmapped_count)
};

// The search for pointers to live allocations in the process's memory.
struct PointerSearch {
  bool is_complete = false;  // true if all memory of the process was searched for pointers
  Text reason;               // reason why some memory was not searched, a sentence; null: none
  // Bytes of memory that the search read; memory that it read several times counts each time.
  Figure scanned_bytes;
  Figure taken_ns;  // length of the search for pointers in nanoseconds
  CUWARDEN_FIELDS(is_complete, reason, scanned_bytes, taken_ns)
};

// A rule by which the user excludes known leaks: from the file of CUWARDEN_SUPPRESSIONS or of
// `cuwarden report --suppressions`.
struct Suppression {
  std::string pattern;  // text behind "leak:" in the suppression rule
  // Number of leak groups that the suppression excludes; number and bytes of their allocations. If
  // several suppressions match a group, it counts for the first of them in the file. Never null.
  Figure groups, count, bytes;
  CUWARDEN_FIELDS(pattern, groups, count, bytes)
};

// The time until a device is full if its growing groups of allocations go on growing as before. The
// growth is reduced if the live bytes rose less (growth_of_devices()).
struct Forecast {
  Id device = 0;  // CUDA ordinal of the device, from 0
  // Free bytes of the device, as in Device::free_bytes. If blocks that PyTorch hands out grow, and
  // no other groups grow faster, the bytes that PyTorch holds and has not handed out are added.
  Figure free_bytes;
  // growth_bytes_per_step: sum of the growth of groups that are judged by the program's steps.
  // steps_left: steps until it has used up free_bytes, rounded down. Null: no group grows by steps.
  Figure growth_bytes_per_step, steps_left;
  // growth_bytes_per_minute: sum of the growth of the groups that are judged by times and have
  // grown for a minute or longer. minutes_left: minutes until this growth has used up free_bytes,
  // rounded down. Null: there is no such group.
  Figure growth_bytes_per_minute, minutes_left;
  // Id in the table `stacks`: stack of the fastest growing group; null: no stack was recorded.
  MaybeId stack;
  // Line of the program's own code that led to the allocations of the fastest growing group, such
  // as "/home/u/train.py:41 in step". Null: unknown.
  Text where;
  CUWARDEN_FIELDS(device, free_bytes, growth_bytes_per_step, steps_left, growth_bytes_per_minute,
                  minutes_left, stack, where)
};

// Memory on one device, or of the host, that a library keeps for itself. A row has the live
// allocations for which code in one file of the library asked.
struct LibraryReserve {
  std::string library;  // name of the library, such as "NCCL"
  MaybeId module;       // id of the library's file in the table `modules`; null: unknown
  MaybeId device;       // CUDA ordinal of the device; null for host memory
  Figure count, bytes;  // number of live allocations at the process's end; their bytes
  std::string holds;    // content of the memory, such as "buffers of communicators"
  Text gives_back;      // calls by which the library gives unused memory back; null: none
  Text limited_by;      // settings and calls that limit the memory; null: none
  CUWARDEN_FIELDS(library, module, device, count, bytes, holds, gives_back, limited_by)
};

// Objects (contexts, streams, modules or executable graphs) that one call stack made, and the
// device memory that the driver took for them without being asked for memory. Memory that the
// driver took for kernels (local memory, device heap) has rows, too: its objects are the pieces
// that the driver took.
struct ImplicitGroup {
  MaybeId device;  // CUDA ordinal of the device, from 0; null: unknown
  // Item of the table `accounts` that contains the bytes of the objects: "streams", "modules",
  // "graphs", "context", "local_memory" or "heap".
  std::string item;
  Text api;  // CUDA function that the program called for the objects; null: unknown
  // Line of the program's own code that led to these calls, such as "/home/u/train.py:41 in step".
  // Null: unknown.
  Text where;
  MaybeId stack;  // id of the call stack in the table `stacks`; null: no stack was recorded
  // Number of objects (such as streams) that have not ended; bytes that the driver took for them.
  Figure count, bytes;
  // Number of objects (such as streams) that were destroyed, or ended with their context.
  Figure released_count;
  // Bytes on the device that the driver keeps of the group's ended objects. Later objects get this
  // memory, except that of green contexts. The driver tells only a sum for all objects of a kind on
  // the device. The figure is the group's share, in proportion to the bytes of its ended objects.
  Figure kept_bytes;
  // Times at which the group's first and last object were made, destroyed or not, in ns since the
  // process's start.
  Figure first_ns, last_ns;
  // Growth of the objects that have not ended. "growing": old ones were made in many parts of the
  // run, until near its end. "burst": many old ones were made, in a part of the run. "steady": most
  // objects end sooner or later. "one_time": others. Null: all objects have ended.
  Text growth;
  // Growth in bytes per minute. The time from the oldest object that has not ended to the process's
  // end has four quarters. Bytes of such objects that were made in the last three are divided by
  // the minutes of these. Null: `growth` is not "growing", or only the program's steps show growth.
  Figure growth_bytes_per_minute;
  // True if `bytes` is an estimate: the memory of at least one object that has not ended was not
  // measured by itself. The object then has an equal part of the memory that several objects took
  // together (`shared` is true), or its bytes are unknown and count as 0.
  bool uncertain = false;
  // True if at least one object that has not ended was measured only together with others, and has
  // an equal part of their bytes. `uncertain` is then true, too.
  bool shared = false;
  // Ids in the table `stacks`, each once: call stacks of the other objects that were measured
  // together with objects of this group. Empty: there are none, or `shared` is false.
  std::vector<Id> shared_with;
  CUWARDEN_FIELDS(device, item, api, where, stack, count, bytes, released_count, kept_bytes,
                  first_ns, last_ns, growth, growth_bytes_per_minute, uncertain, shared,
                  shared_with)
  CUWARDEN_MAY_LACK(where, kept_bytes, growth, growth_bytes_per_minute, uncertain, shared,
                    shared_with)
};

// Sums of cuwarden's own pool, of rescued requests, of meshing and of spilled allocations.
struct Pool {
  std::string mode;  // value of CUWARDEN_POOL: "off", "rescue", "on" or "auto"
  // Number and bytes of refused requests that cuwarden's rungs served after all.
  Figure rescued_count, rescued_bytes;
  // Number and bytes of requests that cuwarden's own pool served.
  Figure served_count, served_bytes;
  Figure held_bytes;      // bytes that cuwarden's pool holds at the process's end
  Figure returned_bytes;  // bytes that cuwarden's pool gave back to devices during the run
  // Number of pages that meshing (two half-empty pages share one page of memory) made share memory.
  // A page that was moved and the page that it joined count 2, and count again each time.
  Figure meshed_pages;
  Figure mesh_recovered_bytes;  // bytes that meshing gave back to devices
  Figure mesh_pause_ns;         // time for which meshing held up the program's GPU work, in ns
  Figure mesh_pauses;           // number of times that meshing held up the program's GPU work
  // Time that meshing took while the program's GPU work went on, in ns: for plans, to prepare
  // memory for moves, and to give it back.
  Figure mesh_plan_ns, mesh_prepare_ns, mesh_release_ns;
  // Bytes of host memory behind spilled device allocations that are live at the process's end.
  Figure spilled_bytes;
  // Most bytes of host memory that lay behind spilled device allocations at one time. With several
  // devices: the sum of each device's most.
  Figure spilled_peak_bytes;
  // Number of allocations that ever got host memory in place of device memory.
  Figure spilled_count;
  // True if the program asked for an IPC handle of memory from cuwarden's pool or of spilled
  // memory: such memory has no IPC handle.
  bool ipc_refused = false;
  CUWARDEN_FIELDS(mode, rescued_count, rescued_bytes, served_count, served_bytes, held_bytes,
                  returned_bytes, meshed_pages, mesh_recovered_bytes, mesh_pause_ns, mesh_pauses,
                  mesh_plan_ns, mesh_prepare_ns, mesh_release_ns, spilled_bytes, spilled_peak_bytes,
                  spilled_count, ipc_refused)
  CUWARDEN_MAY_LACK(mode, rescued_count, rescued_bytes, served_count, served_bytes, held_bytes,
                    returned_bytes, meshed_pages, mesh_recovered_bytes, mesh_pause_ns, mesh_pauses,
                    mesh_plan_ns, mesh_prepare_ns, mesh_release_ns, spilled_bytes,
                    spilled_peak_bytes, spilled_count, ipc_refused)
};

// Live bytes of a kind on a device in a span of time: a row of the report's table `timeline`.
struct Bucket {
  Figure time_ns;   // start of the span of time, in ns since the process's start
  Figure width_ns;  // length of the span of time in ns
  MaybeId device;   // CUDA ordinal of the device; null for host memory
  // Kind of memory, such as "device", or "host_rss" for the process's resident memory. Bytes of
  // "framework_block" lie in memory of other kinds and count there, too.
  std::string kind;
  Figure max_bytes;   // most bytes of `kind` live on `device` at one time in the span of time
  Figure last_bytes;  // live bytes of `kind` on `device` at the end of the span of time
  CUWARDEN_FIELDS(time_ns, width_ns, device, kind, max_bytes, last_bytes)
  CUWARDEN_MAY_LACK(width_ns, device, max_bytes)
};

// A call stack that held memory at the peak: the moment at which the most bytes of a kind were live
// on a device. The figures may be of a nearby moment with slightly fewer live bytes.
struct PeakHolder {
  MaybeId device;    // CUDA ordinal of the device; null for host memory
  std::string kind;  // kind of memory, such as "device" or "pinned"
  MaybeId stack;     // id of the call stack in the table `stacks`; null: no stack was recorded
  // Number and bytes of this stack's allocations of `kind` on `device` that were live at the peak.
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
// The report has the 200 rows with the most bytes.
struct AllocationSite {
  std::string kind;  // kind of memory, such as "device" or "pinned"
  Text api;          // CUDA function that the program called for the allocations; null: unknown
  MaybeId device;    // CUDA ordinal of the device; null for host memory
  MaybeId stack;     // id of the call stack in the table `stacks`; null: no stack was recorded
  // Number of allocations of `kind` on `device` that the stack made by `api`, freed or not.
  Figure allocations;
  Figure allocated_bytes;  // bytes that the stack allocated of `kind` on `device`, freed or not
  CUWARDEN_FIELDS(kind, api, device, stack, allocations, allocated_bytes)
};

}  // namespace cuwarden::model
