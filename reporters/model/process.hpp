// Parts of the report about the process as a whole. report.schema.json describes each field.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// A statement of the report that something is complete, or of the reasons why it is not.
struct Completeness {
  bool complete = true;              // true if nothing is missing: `reasons` is empty
  std::vector<std::string> reasons;  // a sentence for each missing thing; empty: none is missing
  CUWARDEN_FIELDS(complete, reasons)
};
// Returns a statement with the given reasons why something is not complete; complete if there are
// none.
inline Completeness completeness(std::vector<std::string> reasons) {
  return {reasons.empty(), std::move(reasons)};
}

// The program that wrote the report, and the things that the whole report lacks.
struct Tool {
  Text name, version;                // "cuwarden" and its version; null: the report has none
  bool complete = true;              // true if the report lacks nothing: `reasons` is empty
  std::vector<std::string> reasons;  // a sentence for each thing that the report lacks
  CUWARDEN_FIELDS(name, version, complete, reasons)
  CUWARDEN_MAY_LACK(name, version)
};

// The process that the report is about. The fields come from its ledger file, except
// driver_package_version. The maker of the report adds facts about the end that the ledger lacks,
// such as the signal.
struct Process {
  // Process ids of the process and of its parent, in the process's pid namespace. `parent` is 0 if
  // the parent is in another namespace. Null: the report does not say.
  Figure pid, parent;
  Text program;  // path of the file of the program that the process ran
  // Arguments of the process, the program's name first; empty: unknown.
  std::vector<std::string> command_line;
  Text host;          // name of the host on which the process ran
  std::string start;  // time at which the process started, as ISO 8601 text in UTC
  // End of the process, in ns since its start. If the process was still running: the moment of the
  // report. If its end was not seen: the last moment at which it was certainly alive.
  Figure end_ns;
  // Way in which the process ended: "exit" (also by a return from main), "_exit", "quick_exit",
  // "abort", "signal" or "running". Null: the process died without a sign of the reason.
  Text end_reason;
  // Number of steps that the program marked (cuwarden_step()); null: none.
  Figure steps;
  // Exit status of the process; null: it was killed, was running, or left no status.
  SignedFigure exit_status;
  Figure signal;  // number of the signal that killed the process; null: none, or unknown
  // Highest CUDA version that the driver supports, such as "13.0"; null: unknown.
  Text cuda_driver_version;
  // Version of the driver package, such as "580.159.04", that is installed on the machine which
  // makes the report, when it makes it; null: unknown.
  Text driver_package_version;
  Text cuda_runtime_version;  // version of libcudart; null: unknown
  CUWARDEN_FIELDS(pid, parent, program, command_line, host, start, end_ns, end_reason, steps,
                  exit_status, signal, cuda_driver_version, driver_package_version,
                  cuda_runtime_version)
  CUWARDEN_MAY_LACK(parent, steps, driver_package_version, cuda_runtime_version)
};

// The cgroup that counts the process's memory, as the kernel describes it when the report is made.
struct MemoryCgroup {
  // Absolute path of the folder of the cgroup that counts the process's memory. Null: unknown. In a
  // redacted report it is "/".
  Text path;
  // Lowest memory limit of the cgroup and the cgroups above it; null: none, or unknown.
  Figure limit_bytes;
  // Most memory that was ever used in the cgroup whose limit is limit_bytes; without a limit, in
  // the process's own cgroup. Null: unknown.
  Figure peak_bytes;
  // Number of processes of the process's own cgroup that the OOM killer has killed since the
  // process's first CUDA call. Null: unknown.
  Figure oom_kills;
  CUWARDEN_FIELDS(path, limit_bytes, peak_bytes, oom_kills)
  CUWARDEN_MAY_LACK(path, limit_bytes, peak_bytes, oom_kills)
};

// The batch job that the process belongs to, read from its environment variables. A field is null
// if no variable gives it.
struct Job {
  // Scheduler of the batch job: "slurm", "pbs", "lsf", "sge", "cobalt" or "flux"; null: unknown.
  Text scheduler;
  Text job_id;           // id of the batch job; null: unknown
  Text job_step;         // step of the Slurm job; null: unknown
  Text array_task;       // index of the task in an array of batch jobs; null: unknown
  Figure rank;           // rank of the process in its job, from 0; null: unknown
  Text visible_devices;  // value of CUDA_VISIBLE_DEVICES; null: not set
  CUWARDEN_FIELDS(scheduler, job_id, job_step, array_task, rank, visible_devices)
  CUWARDEN_MAY_LACK(job_step, array_task, visible_devices)
};

// A setting of cuwarden, with the value that was in force in the process.
struct Setting {
  std::string name;  // environment variable of the setting, such as "CUWARDEN_POOL"
  Text value;        // value of the setting that was in force
  Text source;       // origin of the setting's value: "environment" or "default"
  CUWARDEN_FIELDS(name, value, source)
};

// An environment variable of the process. The report keeps CUWARDEN_*, CUDA_* and NVIDIA_*, and the
// variables of schedulers and launchers that runtime_hooks/core/job.hpp lists.
struct Variable {
  std::string name;  // name of the environment variable
  Text value;        // value of the environment variable when the process began
  CUWARDEN_FIELDS(name, value)
};

// A hooked function that the program called. A hook is cuwarden's stand-in for a CUDA function.
struct HookCalls {
  std::string name;  // name of the CUDA function that the program called
  // Number of calls by the program. Of functions that launch kernels, only the first launch of each
  // kernel counts.
  Figure calls;
  CUWARDEN_FIELDS(name, calls)
};

// A driver function that has no hook and that the program looked up by name, so that its calls are
// not recorded. Only functions are listed that make the device read or write memory, or that are
// another version of a hooked function, as with and without _v2.
struct UnhookedLookup {
  std::string name;  // name under which the function was looked up
  Figure count;      // number of the program's lookups of this name
  CUWARDEN_FIELDS(name, count)
};

// A step that the program marked, such as an iteration of a training loop: a row of the report's
// table `steps`. If there are more than 256 steps, only some of those without a name have a row.
struct Step {
  Figure number;   // number of the step, from 1
  Figure time_ns;  // start of the step, in ns since the process's start
  Text name;       // name that the program gave the step; null: none
  // End of the part of the run that has the step's name, in ns since the process's start. Null: the
  // step has no name, or the part had not ended when the process did.
  Figure name_end_ns;
  CUWARDEN_FIELDS(number, time_ns, name, name_end_ns)
};

// The cost of recording the process.
struct Overhead {
  // Number of calls of hooked CUDA functions. Of functions that launch kernels, only the first
  // launch of each kernel counts.
  Figure recorded_calls;
  // Time that cuwarden's own work took in calls of hooked CUDA functions, in nanoseconds; 0 if
  // there were no such calls. Otherwise null, since the time is not measured; reports of earlier
  // versions may have an estimate.
  Figure shim_ns;
  Figure ledger_bytes;  // bytes that the process's ledger file uses
  CUWARDEN_FIELDS(recorded_calls, shim_ns, ledger_bytes)
};

}  // namespace cuwarden::model
