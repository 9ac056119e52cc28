// The merged report: many processes of a job as one document. Its tables are lists of rows, which
// refer to rows of other tables by id. merged.schema.json describes each field.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reporters/model/code.hpp"
#include "reporters/model/fields.hpp"
#include "reporters/model/memory.hpp"
#include "reporters/model/process.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// Name and version of the merged report's format.
inline constexpr char merged_schema[] = "cuwarden.merged/1";

// A process whose report was merged, with sums from the report. The process's devices and leaks are
// in the tables `device_uses` and `leaks_of_processes`.
struct MergedProcess {
  Id id = 0;  // number of the process, from 1, by which other tables name it
  // Path of the report's file: relative to the folder that was merged; if several paths were given,
  // as the user gave it.
  std::string report;
  Figure rank;        // rank of the process in its job, from 0; null: unknown
  Text host;          // name of the host on which the process ran; null: unknown
  Figure pid;         // process id in the process's pid namespace; null: the report does not say
  Text program;       // path of the file of the program that the process ran; null: unknown
  std::string start;  // time at which the process started, as ISO 8601 text in UTC
  // End of the process, in ns since its start. If it still ran: the moment of its report.
  Figure end_ns;
  // Way in which the process ended: "exit" (also by a return from main), "_exit", "quick_exit",
  // "abort", "signal" or "running". Null: the process died without a sign of the reason.
  Text end_reason;
  // Exit status of the process; null: it was killed, was running, or left no status.
  SignedFigure exit_status;
  Figure signal;         // number of the signal that killed the process; null: none, or unknown
  Text job_id;           // id of the batch job; null: unknown
  Text visible_devices;  // value of CUDA_VISIBLE_DEVICES; null: not set
  // UUIDs of the devices that the process used. Devices of unknown UUID are left out.
  std::vector<std::string> devices;
  // Sum of the peaks (most live bytes at a time) of each kind of memory on each device.
  Figure peak_bytes;
  // Number and bytes of the process's leaked allocations; only of those of one module if the user
  // asked for that (Merger). If the process still ran when its report was made: number and bytes of
  // its live allocations. Null: unknown.
  Figure leak_count, leak_bytes;
  // First reason why leaks of the process may be missing; null: there is none.
  Text doubt;
  bool pointer_search = false;        // true if the process's memory was searched for pointers
  Figure incidents;                   // number of the process's incidents (refused requests)
  std::vector<std::string> verdicts;  // causes of the incidents, each once, in the incidents' order
  CUWARDEN_FIELDS(id, report, rank, host, pid, program, start, end_ns, end_reason, exit_status,
                  signal, job_id, visible_devices, devices, peak_bytes, leak_count, leak_bytes,
                  doubt, pointer_search, incidents, verdicts)
};

// A process's first request that failed for lack of memory. Requests that cuwarden rescued, or that
// were served when the program repeated them, are left out.
struct Refusal {
  Id process = 0;  // id of the process in the table `processes`, from 1
  // Time of the refusal, as ISO 8601 text in UTC, by the clock of the process's host.
  std::string time;
  Text api;      // CUDA function whose call was refused; null: unknown
  Figure bytes;  // bytes that the request asked for; null: the call does not say
  // Id of the device in the table `devices`; null: host memory, or an unknown device.
  MaybeId device;
  std::string verdict;  // name of the cause, such as "slab_fragmentation"
  // Line of the program's own code that led to the request, such as
  // "/home/u/train.py:41 in step". Null: unknown.
  Text where;
  CUWARDEN_FIELDS(process, time, api, bytes, device, verdict, where)
};

// Earliest refusal of all processes, by the clocks of their hosts, and the processes with later
// refusals.
struct FirstRefusal {
  Id process = 0;  // id in the table `processes`, from 1, of the process that was refused first
  // Time of the first refusal, as ISO 8601 text in UTC, by the clock of the process's host.
  std::string time;
  // Ids in the table `processes` of the other processes with a refusal, in the order of their first
  // refusals. Empty: there are none.
  std::vector<Id> followed_by;
  // Nanoseconds from the first refusal to the first refusal of the last process in `followed_by`.
  // Null: `followed_by` is empty.
  Figure followed_within_ns;
  // True if the order of the refusals holds only if the clocks of several hosts agree: there are
  // several processes, and their hosts differ or the host of one is unknown.
  bool several_clocks = false;
  CUWARDEN_FIELDS(process, time, followed_by, followed_within_ns, several_clocks)
};

// A device, with sums over the processes that used it.
struct MergedDevice {
  Id id = 0;         // number of the device, from 1, by which other tables name it
  Text uuid;         // UUID of the device or MIG slice; null: unknown
  MaybeId device;    // CUDA ordinal of the device if its UUID is unknown; otherwise null
  Text name;         // name of the device's model; null: unknown
  Text host;         // name of the host that has the device; null: unknown
  Figure processes;  // number of processes that used the device
  // Sum of the live bytes on the device of the processes that used it, each at its end; null:
  // unknown.
  Figure live_bytes;
  Figure peak_bytes;  // sum of the peaks (most live bytes at a time) of each process and kind
  Figure refused;     // number of incidents (refused requests) on the device
  // Time of the first request for memory of the device that failed, as ISO 8601 text in UTC. Null:
  // none failed.
  Text full_time;
  // Id in the table `processes` of the process whose request failed at full_time; null: none
  // failed.
  MaybeId full_process;
  CUWARDEN_FIELDS(id, uuid, device, name, host, processes, live_bytes, peak_bytes, refused,
                  full_time, full_process)
};

// The use of a device by a process.
struct DeviceUse {
  Id process = 0;     // id of the process in the table `processes`, from 1
  Id device = 0;      // id of the device in the table `devices`, from 1
  Id ordinal = 0;     // CUDA ordinal of the device as the process sees it, from 0
  Figure live_bytes;  // live bytes at the process's end
  Figure peak_bytes;  // sum of the peaks (most live bytes at a time) of each kind of memory
  Figure refused;     // number of the process's incidents on the device
  CUWARDEN_FIELDS(process, device, ordinal, live_bytes, peak_bytes, refused)
};

// A process that held memory of a device when a request for that device's memory failed for the
// first time (MergedDevice::full_time).
struct DeviceHolder {
  Id device = 0;      // id of the device in the table `devices`, from 1
  MaybeId process{};  // id of the process in the table `processes`; null: its report was not merged
  // Pid of the holding process, as the process that was refused saw it; null: unknown.
  Figure pid;
  Text program;  // path of the process's program, or only its name; null: unknown
  // Bytes of the device that the process held at MergedDevice::full_time; null: unknown.
  Figure bytes;
  CUWARDEN_FIELDS(device, process, pid, program, bytes)
};

// A host on which several processes shared a device while other visible devices had no process.
struct IdleDevices {
  Text host;             // name of the host; null: unknown
  Figure visible;        // number of devices that each process of the host could see
  Figure used;           // number of devices that processes of the host used
  Figure idle;           // number of devices without a process: `visible` less `used`
  Id shared_device = 0;  // id in `devices`, from 1, of the device with the most processes
  Figure processes;      // number of processes on the device `shared_device`
  CUWARDEN_FIELDS(host, visible, used, idle, shared_device, processes)
};

// The leaks that have one fingerprint, summed up over all processes that have them.
struct MergedLeak {
  Id id = 0;  // number of the leak, from 1, by which other tables name it
  // name that the leak has in all processes: 16 hexadecimal digits, a hash
  std::string fingerprint;
  std::string kind;  // kind of memory, such as "device" (Kind)
  // CUDA function that the program called for the allocations; for blocks of a framework: the
  // framework's name. Null: unknown.
  Text api;
  MaybeId stack;  // id of the call stack in the table `stacks`; null: not recorded
  // Line of the program's own code that led to the allocations, such as
  // "/home/u/train.py:41 in step". Null: unknown.
  Text where;
  Figure count, bytes;  // number of allocations that were not freed; their bytes
  // lost: number and bytes of the leak's allocations to which no pointer was found; 0 if no search
  // was made. unknown: number and bytes of the leak's allocations for which the search was not made
  // or not completed.
  Figure lost_count, lost_bytes, unknown_count, unknown_bytes;
  Figure processes;  // number of processes that have the leak
  // Least, median and most bytes of the leak in a process that has the leak. Of two medians, the
  // larger one counts. Null: the bytes of some process are unknown.
  Figure least_bytes, median_bytes, most_bytes;
  // Id in the table `processes` of the process with the most bytes of the leak, if they are at
  // least twice the median of three processes or more. Null: no process stands out.
  MaybeId outlier;
  // Named steps (such as tests), of all processes, in which the leak's allocations were made. The
  // row with most bytes comes first. Steps of one name are one row. Empty: there are none, or the
  // merged report is older than this field.
  std::vector<NamedStep> named_steps;
  CUWARDEN_FIELDS(id, fingerprint, kind, api, stack, where, count, bytes, lost_count, lost_bytes,
                  unknown_count, unknown_bytes, processes, least_bytes, median_bytes, most_bytes,
                  outlier, named_steps)
  CUWARDEN_MAY_LACK(named_steps)
};

// One process's part of a leak: a row of the table `leaks_of_processes`.
struct LeakOfProcess {
  Id leak = 0;     // id of the leak in the table `leaks`, from 1
  Id process = 0;  // id of the process in the table `processes`, from 1
  // count, bytes: number and bytes of the process's allocations that were not freed. lost: number
  // and bytes of the allocations to which no pointer was found; 0 if no search was made. unknown:
  // number and bytes of the allocations for which the search was not made or not completed.
  Figure count, bytes, lost_count, lost_bytes, unknown_count, unknown_bytes;
  // Named steps (such as tests) in which the process made the allocations, most bytes first. Steps
  // of one name are one row. Empty: there are none, or the merged report is older than this field.
  std::vector<NamedStep> named_steps{};
  CUWARDEN_FIELDS(leak, process, count, bytes, lost_count, lost_bytes, unknown_count, unknown_bytes,
                  named_steps)
  CUWARDEN_MAY_LACK(named_steps)
};

// The merged report of many processes: the whole JSON document.
struct MergedReport {
  std::string schema = merged_schema;  // name and version of the merged report's format
  // Program that merged the reports, and reasons why processes may be missing.
  Tool tool;
  std::vector<MergedProcess> processes;  // processes whose reports were merged
  // First refusal of all processes; null: no request failed.
  std::optional<FirstRefusal> first_refusal;
  std::vector<Refusal> refusals;          // first failed request of each process that has one
  std::vector<IdleDevices> idle_devices;  // hosts with both shared and unused devices
  std::vector<MergedDevice> devices;      // devices that the processes used
  std::vector<DeviceUse> device_uses;     // use of each device by each process
  // Processes that held memory of each device when a request for its memory failed for the first
  // time. The process of that request comes first, then the others, most bytes first.
  std::vector<DeviceHolder> device_holders;
  std::vector<MergedLeak> leaks;                  // leaks by fingerprint, the most bytes first
  std::vector<LeakOfProcess> leaks_of_processes;  // leaks of each process
  // Fingerprints of leaks that the user's suppressions exclude in at least one process.
  std::vector<std::string> suppressed_fingerprints;
  std::vector<Setting> settings;  // settings that are the same in all reports that list settings
  std::vector<Stack> stacks;      // call stacks of the leaks, from the first process with the leak
  std::vector<Frame> frames;      // functions on the call stacks of `stacks`
  std::vector<Module> modules;    // programs and libraries with the functions of `frames`
  CUWARDEN_FIELDS(schema, tool, processes, first_refusal, refusals, idle_devices, devices,
                  device_uses, device_holders, leaks, leaks_of_processes, suppressed_fingerprints,
                  settings, stacks, frames, modules)
};

}  // namespace cuwarden::model
