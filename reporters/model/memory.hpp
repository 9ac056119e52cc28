// Tables of the report about how much memory there is and was, and who holds it.
// report.schema.json describes each field. A `device` is a CUDA ordinal, null for host memory; a
// `kind` is a name of core/kind.hpp.
#pragma once

#include <array>
#include <string>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// A device that the process used, with its last reading.
struct Device {
  Id device = 0;
  Text uuid, name;
  Text at;  // null: the device was never read, and the next four fields are null, too
  Figure time_ns, total_bytes, used_bytes, free_bytes;
  Text local_memory_kernel;
  Figure local_memory_kernel_thread_bytes;
  CUWARDEN_FIELDS(device, uuid, name, at, time_ns, total_bytes, used_bytes, free_bytes,
                  local_memory_kernel, local_memory_kernel_thread_bytes)
  CUWARDEN_MAY_LACK(uuid, time_ns, local_memory_kernel, local_memory_kernel_thread_bytes)
};

// A part of a device's used bytes. Only the item `unexplained` may be negative.
struct AccountItem {
  Id device = 0;
  MaybeId incident;  // null: at the last reading
  std::string item;
  SignedFigure bytes;
  CUWARDEN_FIELDS(device, incident, item, bytes)
};

// Another process that held memory of a device, as NVML lists it.
struct DeviceProcess {
  MaybeId device;
  MaybeId incident;
  Figure pid;
  Text program;
  Figure used_bytes;  // null: NVML does not say
  CUWARDEN_FIELDS(device, incident, pid, program, used_bytes)
  CUWARDEN_MAY_LACK(device, incident, program)
};

// Sums of all allocations of a kind on a device.
struct Total {
  std::string kind;
  MaybeId device;
  Figure allocations, frees, failures, live_count, live_bytes, peak_count, peak_bytes;
  Figure peak_time_ns;  // null: nothing was allocated
  CUWARDEN_FIELDS(kind, device, allocations, frees, failures, live_count, live_bytes, peak_count,
                  peak_bytes, peak_time_ns)
  CUWARDEN_MAY_LACK(frees)
};

// Sums of the leak groups: neither suppressed nor released by a context.
struct Leaks {
  Figure bytes, count, suppressed_bytes, released_by_context_bytes;
  CUWARDEN_FIELDS(bytes, count, suppressed_bytes, released_by_context_bytes)
};

// Allocations that were not freed, of one call stack, kind, function and device.
struct LeakGroup {
  MaybeId stack;
  std::string kind;
  Text api;
  MaybeId device;
  Figure count, bytes;
  Figure first_ns, last_ns;  // times at which the first and the last live allocation were made
  MaybeId module;
  Figure allocations;
  Text growth;  // null: a context released them
  Figure growth_bytes_per_minute;
  std::optional<std::array<Figure, 4>> count_by_quarter;
  // null: reachability was not looked for
  Figure lost_count, lost_bytes, reachable_count, reachable_bytes;
  Text released_by;
  bool suppressed = false;
  Text example_address;
  Figure unmapped_count;  // null: not virtual memory
  CUWARDEN_FIELDS(stack, kind, api, device, count, bytes, first_ns, last_ns, module, allocations,
                  growth, growth_bytes_per_minute, count_by_quarter, lost_count, lost_bytes,
                  reachable_count, reachable_bytes, released_by, suppressed, example_address,
                  unmapped_count)
  CUWARDEN_MAY_LACK(growth_bytes_per_minute, count_by_quarter, lost_count, lost_bytes,
                    reachable_count, reachable_bytes, example_address, unmapped_count)
};

// cuwarden's own pool, with rescues, spill and meshing.
struct Pool {
  std::string mode;
  Figure rescued_count, rescued_bytes, served_count, served_bytes, held_bytes, returned_bytes;
  Figure meshed_pages, mesh_recovered_bytes, mesh_pause_ns;
  Figure spilled_bytes, spilled_peak_bytes, spilled_count;
  bool ipc_refused = false;
  CUWARDEN_FIELDS(mode, rescued_count, rescued_bytes, served_count, served_bytes, held_bytes,
                  returned_bytes, meshed_pages, mesh_recovered_bytes, mesh_pause_ns, spilled_bytes,
                  spilled_peak_bytes, spilled_count, ipc_refused)
  CUWARDEN_MAY_LACK(mode, rescued_count, rescued_bytes, served_count, served_bytes, held_bytes,
                    returned_bytes, meshed_pages, mesh_recovered_bytes, mesh_pause_ns,
                    spilled_bytes, spilled_peak_bytes, spilled_count, ipc_refused)
};

// Live bytes of a kind on a device in a span of time.
struct Bucket {
  Figure time_ns, width_ns;
  MaybeId device;
  std::string kind;  // also "host_rss"
  Figure max_bytes, last_bytes;
  CUWARDEN_FIELDS(time_ns, width_ns, device, kind, max_bytes, last_bytes)
  CUWARDEN_MAY_LACK(width_ns, device, max_bytes)
};

// A call stack that held memory at its device's peak.
struct PeakHolder {
  MaybeId device;
  std::string kind;
  MaybeId stack;
  Figure count, bytes, allocations;
  Figure first_ns, last_ns;  // times at which the first and the last allocation were made there
  CUWARDEN_FIELDS(device, kind, stack, count, bytes, allocations, first_ns, last_ns)
  CUWARDEN_MAY_LACK(allocations, first_ns, last_ns)
};

}  // namespace cuwarden::model
