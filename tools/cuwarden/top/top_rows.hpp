// The object that `top --json` prints, as structs. top.schema.json describes each field; a test
// compares the two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden {

inline constexpr char top_schema[] = "cuwarden.top/1";

// A live process at the moment of its newest sample.
struct ProcessRow {
  std::int64_t pid = 0;
  model::Text program;
  std::string start;
  model::Figure running_ns;
  bool ended = false;
  model::Figure device_bytes, host_bytes, live_count, allocations, failures;
  model::SignedFigure growth_bytes_per_minute, allocations_per_minute;  // null: one sample only
  CUWARDEN_FIELDS(pid, program, start, running_ns, ended, device_bytes, host_bytes, live_count,
                  allocations, failures, growth_bytes_per_minute, allocations_per_minute)
};

// A device as a process last read it.
struct DeviceRow {
  std::int64_t pid = 0;
  model::MaybeId device;
  model::Text name;
  model::Figure total_bytes, used_bytes;  // null: never read
  CUWARDEN_FIELDS(pid, device, name, total_bytes, used_bytes)
};

// Sums of a process over all allocations of a kind on a device.
struct TotalRow {
  std::int64_t pid = 0;
  std::string kind;
  model::MaybeId device;
  model::Figure live_bytes, live_count, peak_bytes, allocations, failures;
  CUWARDEN_FIELDS(pid, kind, device, live_bytes, live_count, peak_bytes, allocations, failures)
};

// A call stack of a process, with its allocations of a kind on a device.
struct StackRow {
  std::int64_t pid = 0;
  std::string kind;
  model::MaybeId device;
  model::Text api, where;
  model::Figure live_bytes, live_count, allocations;
  model::SignedFigure growth_bytes_per_minute, allocations_per_minute;  // null: one sample only
  bool keeps_growing = false;
  model::Figure keeps_growing_bytes_per_minute;
  CUWARDEN_FIELDS(pid, kind, device, api, where, live_bytes, live_count, allocations,
                  growth_bytes_per_minute, allocations_per_minute, keeps_growing,
                  keeps_growing_bytes_per_minute)
};

// The whole object.
struct TopAnswer {
  std::string schema = top_schema;
  std::string tool_version, time;
  std::vector<ProcessRow> processes;
  std::vector<DeviceRow> devices;
  std::vector<TotalRow> totals;
  std::vector<StackRow> stacks;  // only if a process was named
  CUWARDEN_FIELDS(schema, tool_version, time, processes, devices, totals, stacks)
  CUWARDEN_MAY_LACK(stacks)
};

}  // namespace cuwarden
