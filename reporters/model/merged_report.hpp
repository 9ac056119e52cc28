// The merged report: many processes of a job as one document. Its tables are flat and join by id,
// as those of a report do. merged.schema.json describes each field.
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

// A process, with the sums of its report. Its devices and leaks are in tables of their own.
struct MergedProcess {
  Id id = 0;           // number of the process, from 1, by which other tables name it
  std::string report;  // path of the report's file, as the view over the processes shows it
  Figure rank;         // rank of the process in its job, from 0; null: unknown
  Text host;           // name of the host on which the process ran; null: unknown
  Figure pid;          // process id in the process's pid namespace; null: the report does not say
  Text program;        // path of the file of the program that the process ran
  std::string start;   // time at which the process started, as ISO 8601 text in UTC
  // end_ns, end_reason, exit_status, signal: as in Process.
  Figure end_ns;
  Text end_reason;
  SignedFigure exit_status;
  Figure signal;
  Text job_id;                       // id of the batch job; null: unknown
  Text visible_devices;              // value of CUDA_VISIBLE_DEVICES; null: not set
  std::vector<std::string> devices;  // UUIDs of the devices that the process used; unknown ones are
                                     // left out
  // Sum of the most bytes that were live at one time, over kinds of memory and devices.
  Figure peak_bytes;
  // Number of leaked allocations, and their bytes; of all live ones if the process still ran.
  Figure leak_count, leak_bytes;
  // First reason why leaks of the process may be missing; null: there is none.
  Text doubt;
  bool pointer_search = false;        // true if the process's memory was searched for pointers
  Figure incidents;                   // number of the process's incidents
  std::vector<std::string> verdicts;  // causes of these incidents, each once, in their order
  CUWARDEN_FIELDS(id, report, rank, host, pid, program, start, end_ns, end_reason, exit_status,
                  signal, job_id, visible_devices, devices, peak_bytes, leak_count, leak_bytes,
                  doubt, pointer_search, incidents, verdicts)
};

// A request that failed for lack of memory: the first one of its process that the program saw fail.
struct Refusal {
  Id process = 0;       // row of the table `processes`
  std::string time;     // time of the refusal by the clock of the process's host, as ISO 8601 text
  Text api;             // CUDA function that the program called; null: unknown
  Figure bytes;         // bytes that the request asked for; null: the call does not say
  MaybeId device;       // row of the table `devices`; null: host memory, or an unknown device
  std::string verdict;  // name of the cause, such as "slab_fragmentation"
  Text where;           // line of the program's own code that led to the request; null: unknown
  CUWARDEN_FIELDS(process, time, api, bytes, device, verdict, where)
};

// The refusal that was the first of all, by the clocks of the hosts, and those that followed.
struct FirstRefusal {
  Id process = 0;    // row of the table `processes`
  std::string time;  // time of the refusal, as ISO 8601 text in UTC
  // Rows of the table `processes` whose requests failed later, in the order of their refusals.
  std::vector<Id> followed_by;
  // Nanoseconds from the first refusal to the last process's; null: no process followed.
  Figure followed_within_ns;
  // True if the processes ran on several hosts, or if the host of one of several is unknown. The
  // order then holds only if the hosts' clocks agree.
  bool several_clocks = false;
  CUWARDEN_FIELDS(process, time, followed_by, followed_within_ns, several_clocks)
};

// A device, with the sums over the processes that used it.
struct MergedDevice {
  Id id = 0;       // number of the device, from 1, by which other tables name it
  Text uuid;       // UUID of the device or MIG slice; null: unknown
  MaybeId device;  // CUDA ordinal of the device on its host, if the UUID is unknown; otherwise null
  Text name;       // name of the device's model; null: unknown
  Text host;       // name of the host of the processes; null: unknown
  Figure processes;   // number of processes that used the device
  Figure live_bytes;  // sum of these processes' live bytes at their ends
  Figure peak_bytes;  // sum of the peaks (most live bytes at a time) of each process and kind
  Figure refused;     // number of incidents on the device
  Text full_time;  // time of the first request on the device that failed, as ISO 8601 text in UTC;
                   // null: none failed
  MaybeId
      full_process;  // row of the table `processes` whose request failed then; null: none failed
  CUWARDEN_FIELDS(id, uuid, device, name, host, processes, live_bytes, peak_bytes, refused,
                  full_time, full_process)
};

// The use of a device by a process.
struct DeviceUse {
  Id process = 0;     // row of the table `processes`
  Id device = 0;      // row of the table `devices`
  Id ordinal = 0;     // CUDA ordinal of the device as the process sees it, from 0
  Figure live_bytes;  // live bytes at the process's end
  Figure peak_bytes;  // sum of the peaks (most live bytes at a time) of each kind of memory
  Figure refused;     // number of the process's incidents on the device
  CUWARDEN_FIELDS(process, device, ordinal, live_bytes, peak_bytes, refused)
};

// A process that held memory of a device at the moment MergedDevice::full_time.
struct DeviceHolder {
  Id device = 0;    // row of the table `devices`
  MaybeId process;  // row of the table `processes`; null: the process has no report here
  Figure pid;       // id of the process, as the refused process saw it; null: unknown
  Text program;     // path of the process's program, or only its name; null: unknown
  Figure bytes;     // bytes of the device that the process held; null: unknown
  CUWARDEN_FIELDS(device, process, pid, program, bytes)
};

// A host on which several processes shared a device while other visible devices had no process.
struct IdleDevices {
  Text host;             // name of the host; null: unknown
  Figure visible;        // number of devices that each process of the host could see
  Figure used;           // number of devices that processes of the host used
  Figure idle;           // number of devices without a process: `visible` less `used`
  Id shared_device = 0;  // row of the table `devices`: the one with the most processes
  Figure processes;      // number of processes on that device
  CUWARDEN_FIELDS(host, visible, used, idle, shared_device, processes)
};

// The leaks with one fingerprint, in all processes that have them.
struct MergedLeak {
  Id id = 0;                // number of the leak, from 1, by which other tables name it
  std::string fingerprint;  // as in LeakGroup
  std::string kind;         // kind of memory, such as "device" (core/kind.hpp)
  Text api;                 // CUDA function that the program called, or framework; null: unknown
  MaybeId stack;            // row of the table `stacks`; null: no stack was recorded
  Text where;           // line of the program's own code that led to the allocations; null: unknown
  Figure count, bytes;  // number of allocations that were not freed; their bytes
  // Number and bytes of allocations to which no pointer was found, and of those for which the
  // search for pointers has no result.
  Figure lost_count, lost_bytes, unknown_count, unknown_bytes;
  Figure processes;  // number of processes that have the leak
  // Least, median and most bytes of a process that has the leak. The upper of two medians counts.
  Figure least_bytes, median_bytes, most_bytes;
  // Row of the table `processes` that holds at least twice the median, of three processes or more;
  // null: none stands out.
  MaybeId outlier;
  // Named steps (such as tests) of all processes in which the allocations were made, most bytes
  // first. Steps of one name are one row. Empty: there are none, or the merged report is older than
  // this field.
  std::vector<NamedStep> named_steps;
  CUWARDEN_FIELDS(id, fingerprint, kind, api, stack, where, count, bytes, lost_count, lost_bytes,
                  unknown_count, unknown_bytes, processes, least_bytes, median_bytes, most_bytes,
                  outlier, named_steps)
  CUWARDEN_MAY_LACK(named_steps)
};

// A leak in one process.
struct LeakOfProcess {
  Id leak = 0;     // row of the table `leaks`
  Id process = 0;  // row of the table `processes`
  // As in MergedLeak.
  Figure count, bytes, lost_count, lost_bytes, unknown_count, unknown_bytes;
  // As in MergedLeak, for the steps of this process.
  std::vector<NamedStep> named_steps;
  CUWARDEN_FIELDS(leak, process, count, bytes, lost_count, lost_bytes, unknown_count, unknown_bytes,
                  named_steps)
  CUWARDEN_MAY_LACK(named_steps)
};

// The merged report: the whole JSON document.
struct MergedReport {
  std::string schema = merged_schema;  // name and version of the merged report's format
  // Program that merged the reports, and reasons why processes may be missing.
  Tool tool;
  std::vector<MergedProcess> processes;       // processes whose reports were merged
  std::optional<FirstRefusal> first_refusal;  // null: no process saw a request fail
  std::vector<Refusal> refusals;              // first failed request of each process that has one
  std::vector<IdleDevices> idle_devices;      // hosts with a shared device and idle ones
  std::vector<MergedDevice> devices;          // devices that the processes used
  std::vector<DeviceUse> device_uses;         // use of each device by each process
  // Processes that held memory of a device when a request on it failed first: the refused process
  // itself, then the others, those with the most bytes first.
  std::vector<DeviceHolder> device_holders;
  std::vector<MergedLeak> leaks;                  // leaks by fingerprint, the most bytes first
  std::vector<LeakOfProcess> leaks_of_processes;  // leaks of each process
  // Fingerprints of leaks that are suppressed in a process.
  std::vector<std::string> suppressed_fingerprints;
  std::vector<Setting> settings;  // settings that are the same in all reports that list settings
  std::vector<Stack> stacks;      // call stacks of the leaks, each that of the first process
  std::vector<Frame> frames;      // functions on the call stacks of `stacks`
  std::vector<Module> modules;    // programs and libraries with the functions of `frames`
  CUWARDEN_FIELDS(schema, tool, processes, first_refusal, refusals, idle_devices, devices,
                  device_uses, device_holders, leaks, leaks_of_processes, suppressed_fingerprints,
                  settings, stacks, frames, modules)
};

}  // namespace cuwarden::model
