// The JSON object that `cuwarden top --json` prints, as structs: member names are the JSON's. A
// test compares them with top.schema.json, which describes the fields, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden {

// Name and version of the schema of the JSON object that `cuwarden top --json` prints; the value of
// its member "schema".
inline constexpr char top_schema[] = "cuwarden.top/1";

// A process that `cuwarden top` shows, with the numbers that were last read from its ledger.
struct ProcessRow {
  std::int64_t pid = 0;  // id of the process in the pid namespace of this command
  model::Text program;   // path of the executable of the process; null: unknown
  // Name of the user as whom the process runs, or the uid in digits; null: unknown.
  model::Text user;
  model::Figure rank;        // rank of the process in its job, from 0; null: unknown
  std::string start;         // start of the process, as ISO 8601 text in UTC
  model::Figure running_ns;  // nanoseconds from the process's start to the last reading
  bool ended = false;        // true if the process ended while `cuwarden top` watched it
  // Live bytes of all kinds of memory that the program asks for (is_asked_for()), but for those of
  // host_bytes.
  model::Figure device_bytes;
  model::Figure host_bytes;  // live bytes of page-locked and registered host memory
  // Sum of the highest live bytes of each kind of memory on each device, host memory included. The
  // kinds need not have been highest at the same moment.
  model::Figure peak_bytes;
  model::Figure live_count;   // number of live allocations
  model::Figure allocations;  // number of allocations since the process's start
  model::Figure failures;     // number of refused requests since the process's start
  model::Figure rescues;      // number of requests that the driver refused and cuwarden served
  // Change of the process's live bytes, and number of new allocations: both per minute, measured
  // between two readings of the ledger (half a second apart with --json, at most about ten seconds
  // in the live view). Null if the ledger was read only once.
  model::SignedFigure growth_bytes_per_minute, allocations_per_minute;
  model::Figure steps;  // number of steps that the program has marked; null: none
  CUWARDEN_FIELDS(pid, program, user, rank, start, running_ns, ended, device_bytes, host_bytes,
                  peak_bytes, live_count, allocations, failures, rescues, growth_bytes_per_minute,
                  allocations_per_minute, steps)
};

// A device that a process has used, with the last reading of the device's memory in the process's
// ledger. The shim asks the driver for a reading near recorded calls.
struct DeviceRow {
  std::int64_t pid = 0;  // id of the process, in the pid namespace of this command
  // CUDA ordinal of the device in the process, from 0. Null: the process's ledger is damaged, and
  // the ordinal in it is negative.
  model::MaybeId device;
  model::Text name;           // name of the device's model; null: unknown
  model::Figure total_bytes;  // size of the device; null: the ledger has no reading
  // Bytes of the device that all processes together used at the last reading; null: the ledger has
  // no reading.
  model::Figure used_bytes;
  // Number of the program's steps, and of minutes, after which the device is full if its growing
  // call stacks go on as before. `steps_left`: null if none grows by steps. `minutes_left`: null if
  // none grows by time. Both are null if the process has ended, or if the ledger has no reading.
  model::Figure steps_left, minutes_left;
  CUWARDEN_FIELDS(pid, device, name, total_bytes, used_bytes, steps_left, minutes_left)
};

// Sums over all allocations of one kind on one device, made by one process.
struct TotalRow {
  std::int64_t pid = 0;   // id of the process, in the pid namespace of this command
  std::string kind;       // kind of memory, such as "device" or "pinned"
  model::MaybeId device;  // CUDA ordinal of the device in the process; null: host memory
  model::Figure live_bytes, live_count;  // bytes and number of live allocations
  model::Figure peak_bytes;              // highest live bytes since the process's start
  model::Figure allocations;             // number of allocations since the process's start
  model::Figure failures;                // number of refused requests since the process's start
  CUWARDEN_FIELDS(pid, kind, device, live_bytes, live_count, peak_bytes, allocations, failures)
};

// A request of a process that was refused for lack of memory, while a rung (one of cuwarden's
// attempts to serve it) is under way.
struct WaitingRow {
  std::int64_t pid = 0;   // id of the process, in the pid namespace of this command
  model::Figure thread;   // kernel's id of the thread that made the request
  std::string kind;       // kind of memory of the request, such as "device" or "pinned"
  model::MaybeId device;  // CUDA ordinal of the device in the process; null: host memory
  // Thing for which memory is needed: "memory" for allocations; otherwise such as "context" or
  // "launch".
  std::string asked_for;
  model::Figure bytes;  // size of the request; null: the call does not say
  // api: the CUDA function that was called, such as cudaMalloc. where: the calling function with
  // file and line, or library and offset; "no stack was recorded" if no such frame is known. Null:
  // unknown.
  model::Text api, where;
  std::string rung;           // name of the rung (attempt) that is under way, such as "wait"
  model::Figure duration_ns;  // nanoseconds for which the rung has been under way
  CUWARDEN_FIELDS(pid, thread, kind, device, asked_for, bytes, api, where, rung, duration_ns)
};

// The allocations of one process that have one call stack, one function, one kind of memory and one
// device.
struct StackRow {
  std::int64_t pid = 0;   // id of the process, in the pid namespace of this command
  std::string kind;       // kind of memory, such as "device" or "pinned"
  model::MaybeId device;  // CUDA ordinal of the device in the process; null: host memory
  // api: the CUDA function that was called, such as cudaMalloc. where: the calling function with
  // file and line, or library and offset; "no stack was recorded" if no such frame is known. Null:
  // unknown.
  model::Text api, where;
  model::Figure live_bytes, live_count;  // bytes and number of live allocations
  model::Figure allocations;             // number of allocations since the process's start
  // Change of the live bytes of these allocations, and number of new ones: both per minute,
  // measured between two readings of the ledger (half a second apart with --json, at most about ten
  // seconds in the live view). Null if the ledger was read only once.
  model::SignedFigure growth_bytes_per_minute, allocations_per_minute;
  // True if the live bytes have grown for at least a minute, as the ages of the live allocations
  // show.
  bool keeps_growing = false;
  // Growth of the live bytes per minute if keeps_growing is true; otherwise null.
  model::Figure keeps_growing_bytes_per_minute;
  // Growth of the live bytes per step of the program, and step in which the oldest of them were
  // allocated. Null if keeps_growing is false, or if the growth is not judged by steps, as in a
  // program that does not mark its steps.
  model::Figure keeps_growing_bytes_per_step, keeps_growing_since_step;
  CUWARDEN_FIELDS(pid, kind, device, api, where, live_bytes, live_count, allocations,
                  growth_bytes_per_minute, allocations_per_minute, keeps_growing,
                  keeps_growing_bytes_per_minute, keeps_growing_bytes_per_step,
                  keeps_growing_since_step)
};

// The whole JSON object that `cuwarden top --json` prints.
struct TopAnswer {
  std::string schema = top_schema;  // name and version of the schema of the JSON object
  // tool_version: version of cuwarden. time: moment at which the object was made (UTC, ISO 8601).
  std::string tool_version, time;
  std::vector<ProcessRow> processes;  // the processes that are shown
  // Devices with their memory: one row for each device that each of the processes has used.
  std::vector<DeviceRow> devices;
  std::vector<TotalRow> totals;  // sums of each process by kind of memory and device
  // Refused requests of the processes that cuwarden still tries to serve.
  std::vector<WaitingRow> waiting;
  // Call stacks of the process that the user has named; without a named process, the JSON has no
  // such member.
  std::vector<StackRow> stacks;
  CUWARDEN_FIELDS(schema, tool_version, time, processes, devices, totals, waiting, stacks)
  CUWARDEN_MAY_LACK(stacks)
};

}  // namespace cuwarden
