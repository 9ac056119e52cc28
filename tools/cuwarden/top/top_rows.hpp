// The JSON object that `cuwarden top --json` prints, as structs: member names are the JSON's. A
// test compares them with top.schema.json, which describes the fields, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden {

// Name and version of the JSON object's schema, its member "schema".
inline constexpr char top_schema[] = "cuwarden.top/1";

// A running process, at the moment at which its numbers were last read from its ledger.
struct ProcessRow {
  std::int64_t pid = 0;      // as this command sees it
  model::Text program;       // path of the executable; null: unknown
  std::string start;         // start of the process, UTC, ISO 8601
  model::Figure running_ns;  // time since the start
  bool ended = false;        // true if the process ended while the command watched it
  // Live bytes of device memory (managed memory included) and of page-locked and registered host
  // memory; number of live allocations; allocations since the process's start; requests that were
  // refused.
  model::Figure device_bytes, host_bytes, live_count, allocations, failures;
  // Change of the live bytes, and number of new allocations: both per minute, over the last ten
  // seconds. Null if the ledger was read only once.
  model::SignedFigure growth_bytes_per_minute, allocations_per_minute;
  CUWARDEN_FIELDS(pid, program, start, running_ns, ended, device_bytes, host_bytes, live_count,
                  allocations, failures, growth_bytes_per_minute, allocations_per_minute)
};

// A device's memory, as a process last asked the driver for it (and its ledger stores it).
struct DeviceRow {
  std::int64_t pid = 0;   // the process that asked
  model::MaybeId device;  // CUDA ordinal in that process
  model::Text name;       // null: unknown
  // Size of the device, and bytes of it that all processes use; null: the process has not asked.
  model::Figure total_bytes, used_bytes;
  CUWARDEN_FIELDS(pid, device, name, total_bytes, used_bytes)
};

// Sums over all allocations of one kind on one device, made by one process.
struct TotalRow {
  std::int64_t pid = 0;
  std::string kind;       // kind of memory, such as "device" or "pinned"
  model::MaybeId device;  // CUDA ordinal in the process; null: host memory
  // Live bytes; number of live allocations; most bytes that were live at one moment, of this kind
  // on this device; allocations since the process's start; requests that were refused.
  model::Figure live_bytes, live_count, peak_bytes, allocations, failures;
  CUWARDEN_FIELDS(pid, kind, device, live_bytes, live_count, peak_bytes, allocations, failures)
};

// The allocations of one process that have one call stack, one kind of memory and one device.
struct StackRow {
  std::int64_t pid = 0;
  std::string kind;       // kind of memory, such as "device" or "pinned"
  model::MaybeId device;  // CUDA ordinal in the process; null: host memory
  // The function that was called, such as cudaMalloc, and the calling function with file and line.
  // Null: unknown.
  model::Text api, where;
  // Live bytes; number of live allocations; allocations since the process's start.
  model::Figure live_bytes, live_count, allocations;
  // Change of the live bytes, and number of new allocations: both per minute, over the last ten
  // seconds. Null if the ledger was read only once.
  model::SignedFigure growth_bytes_per_minute, allocations_per_minute;
  // True if the live bytes have grown for at least a minute, by the ages of the live allocations.
  bool keeps_growing = false;
  model::Figure keeps_growing_bytes_per_minute;  // speed of that growth; null: no such growth
  CUWARDEN_FIELDS(pid, kind, device, api, where, live_bytes, live_count, allocations,
                  growth_bytes_per_minute, allocations_per_minute, keeps_growing,
                  keeps_growing_bytes_per_minute)
};

// The whole JSON object.
struct TopAnswer {
  std::string schema = top_schema;
  // tool_version: version of cuwarden. time: moment of the output (UTC, ISO 8601).
  std::string tool_version, time;
  std::vector<ProcessRow> processes;
  std::vector<DeviceRow> devices;
  std::vector<TotalRow> totals;
  std::vector<StackRow> stacks;  // in the JSON only if the user has named one process
  CUWARDEN_FIELDS(schema, tool_version, time, processes, devices, totals, stacks)
  CUWARDEN_MAY_LACK(stacks)
};

}  // namespace cuwarden
