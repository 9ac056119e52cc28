// Parts of the report about the process as a whole. report.schema.json describes each field.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// Complete exactly if there is no reason.
struct Completeness {
  bool complete = true;
  std::vector<std::string> reasons;  // a sentence each
  CUWARDEN_FIELDS(complete, reasons)
};
inline Completeness completeness(std::vector<std::string> reasons) {
  return {reasons.empty(), std::move(reasons)};
}

// The program that wrote the report, and what the report lacks in all.
struct Tool {
  Text name, version;
  bool complete = true;
  std::vector<std::string> reasons;
  CUWARDEN_FIELDS(name, version, complete, reasons)
  CUWARDEN_MAY_LACK(name, version)
};

// The process that the report is about, by its ledger.
struct Process {
  Figure pid, parent;  // parent: 0 in another pid namespace
  Text program;        // path
  std::vector<std::string> command_line;
  Text host;
  std::string start;  // ISO 8601, UTC
  Figure end_ns;      // since the process's start
  Text end_reason;    // null: died without a sign
  SignedFigure exit_status;
  Figure signal;
  Text cuda_driver_version, driver_package_version, cuda_runtime_version;
  CUWARDEN_FIELDS(pid, parent, program, command_line, host, start, end_ns, end_reason, exit_status,
                  signal, cuda_driver_version, driver_package_version, cuda_runtime_version)
  CUWARDEN_MAY_LACK(parent, driver_package_version, cuda_runtime_version)
};

// The cgroup that counts the process's memory, by the kernel when the report is made.
struct MemoryCgroup {
  Text path;
  Figure limit_bytes;  // null: none
  Figure peak_bytes, oom_kills;
  CUWARDEN_FIELDS(path, limit_bytes, peak_bytes, oom_kills)
  CUWARDEN_MAY_LACK(path, limit_bytes, peak_bytes, oom_kills)
};

// The job of a scheduler or launcher, by the process's environment; null: not set there.
struct Job {
  Text scheduler, job_id, job_step, array_task;
  Figure rank;
  Text visible_devices;  // CUDA_VISIBLE_DEVICES
  CUWARDEN_FIELDS(scheduler, job_id, job_step, array_task, rank, visible_devices)
  CUWARDEN_MAY_LACK(job_step, array_task, visible_devices)
};

// A setting of cuwarden's in force in the process.
struct Setting {
  std::string name;
  Text value;
  Text source;
  CUWARDEN_FIELDS(name, value, source)
};

// An environment variable of the process, from the list that core/job.hpp and the shim keep.
struct Variable {
  std::string name;
  Text value;
  CUWARDEN_FIELDS(name, value)
};

// A hooked function that the program called.
struct HookCalls {
  std::string name;
  Figure calls;
  CUWARDEN_FIELDS(name, calls)
};

// A driver function that the program looked up and that no hook stands for.
struct UnhookedLookup {
  std::string name;
  Figure count;
  CUWARDEN_FIELDS(name, count)
};

// The cost of recording, by the ledger.
struct Overhead {
  Figure recorded_calls;
  Figure shim_ns;  // null: not measured
  Figure ledger_bytes;
  CUWARDEN_FIELDS(recorded_calls, shim_ns, ledger_bytes)
};

}  // namespace cuwarden::model
