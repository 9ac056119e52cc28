// The report: a struct for each object and each row of a table of `cuwarden.report/1`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reporters/model/code.hpp"
#include "reporters/model/fragmentation.hpp"
#include "reporters/model/frameworks.hpp"
#include "reporters/model/incidents.hpp"
#include "reporters/model/memory.hpp"
#include "reporters/model/process.hpp"

namespace cuwarden::model {

// Name and version of the report's format.
inline constexpr char report_schema[] = "cuwarden.report/1";

// The report about one process: the whole JSON document. report.schema.json describes each field.
struct Report {
  std::string schema = report_schema;  // name and version of the report's format
  Tool tool;  // program that wrote the report, and reasons why the report is incomplete
  // records: statement that the report has all allocations that the hooks saw, or why not. names:
  // statement that all names of functions, files and lines were found, or why not; those of system
  // libraries do not count. `tool` has the same reasons. Null: the report is older than these
  // fields.
  std::optional<Completeness> records, names;
  bool redacted = false;  // true if redact() has taken out host, user, folders and environment
  Process process;        // description of the process that the report is about
  // Memory cgroup of the process. Null: unknown, the cgroup is gone, the process ran on another
  // machine or before the last boot, or the report is older than this field.
  std::optional<MemoryCgroup> memory_cgroup;
  Job job;  // batch job that the process belongs to; all fields null: none is known
  std::vector<Setting> settings;      // cuwarden's settings that were in force in the process
  std::vector<Variable> environment;  // environment variables about CUDA and jobs
  // Statement that the hooks saw all CUDA calls of the process, or why not.
  Completeness coverage;
  std::vector<HookCalls> hooks;  // hooked CUDA functions that the program called
  // Functions without a hook that the program looked up by name: those that make the device read or
  // write memory, and other versions of hooked functions.
  std::vector<UnhookedLookup> unhooked_lookups;
  std::vector<Device> devices;  // CUDA devices that the process used
  // Parts of each device's used bytes, at the end of the process and at refused requests.
  std::vector<AccountItem> accounts;
  std::vector<DeviceProcess> device_processes;  // other processes that used devices
  std::vector<Total> totals;  // sums of all allocations by kind of memory and device
  Leaks leaks;                // sums of the table leak_groups
  // Search for pointers to live allocations. Null: no search was made, or the report is older than
  // this field.
  std::optional<PointerSearch> pointer_search;
  // Allocations that were not freed, by call stack, function, kind and device.
  std::vector<LeakGroup> leak_groups;
  // Rules by which the user excludes leaks; empty: there are none.
  std::vector<Suppression> suppressions;
  // Devices whose live memory grows, and how long their free memory lasts.
  std::vector<Forecast> forecasts;
  std::vector<LibraryReserve> library_reserves;  // live memory that libraries keep for themselves
  // Memory that frameworks such as PyTorch have taken from CUDA, and the part of it that they use.
  std::vector<Framework> frameworks;
  // Blocks that frameworks have handed out and not got back, by call stack; empty if they were not
  // recorded (CUWARDEN_TENSORS).
  std::vector<FrameworkSite> framework_sites;
  // Objects such as streams, by call stack, with the device memory that the driver took for them.
  std::vector<ImplicitGroup> implicit_groups;
  // Memory of each device that is held but cannot be used, at the end of the process.
  std::vector<Fragmentation> fragmentation;
  // Slabs (the driver's 2 MiB pages of small requests) at the end of the process, by size class.
  std::vector<SlabClass> slab_classes;
  std::vector<Slab> slab_map;  // each slab (2 MiB page of small requests) at the end of the process
  // Call stacks with live allocations in slabs (2 MiB pages) at the end of the process.
  std::vector<SlabHolder> slab_holders;
  // The moment of the run at which most freed memory of each device was locked in slabs (kept from
  // other requests, because a part of the slab was live).
  std::vector<WorstFragmentation> worst_fragmentation;
  // Slabs by size class, at the moment of the run at which most freed memory of their device was
  // locked in slabs.
  std::vector<SlabClass> worst_slab_classes;
  // Each slab at the moment of the run at which most freed memory of its device was locked in
  // slabs.
  std::vector<WorstSlab> worst_slab_map;
  // Call stacks that locked freed memory in slabs, at or shortly before the moment of the run at
  // which most freed memory of their device was locked in slabs.
  std::vector<WorstSlabHolder> worst_slab_holders;
  // Incidents: requests that were refused for lack of memory. Refusals of one call stack, function,
  // kind and device are one row.
  std::vector<Incident> incidents;
  // Numbers that were known at the incidents' first refusals.
  std::vector<IncidentFact> incident_facts;
  std::vector<Rung> rungs;                  // cuwarden's attempts (rungs) to serve refused requests
  std::vector<RungLeftOut> rungs_left_out;  // attempts (rungs) that were not made, with the reasons
  // Call stacks that held much memory at the first refusal of each incident.
  std::vector<IncidentHolder> incident_holders;
  // Memory of the device that was not in use but that no other request could use, at the first
  // refusal of each incident.
  std::vector<IncidentFragmentation> incident_fragmentation;
  // Slabs (2 MiB pages of small requests) at the first refusal of each incident, by size class.
  std::vector<IncidentSlabClass> incident_slab_classes;
  std::vector<IncidentSlab> incident_slab_map;  // each slab (2 MiB page) at each first refusal
  // Sums of cuwarden's own pool, of rescues, of meshing and of spilled memory. Null: the report is
  // older than this field.
  std::optional<Pool> pool;
  std::vector<Bucket> timeline;  // live bytes over time, by kind and device
  // Call stacks that held memory when most bytes of a kind were live.
  std::vector<PeakHolder> peak_holders;
  // Call stacks that allocated most bytes over the run; empty: the report is older than this table.
  std::vector<AllocationSite> allocation_sites;
  // Steps that the program marked; empty: it marked none, or the report is older than this table.
  std::vector<Step> steps;
  std::vector<Stack> stacks;         // call stacks to which other tables refer
  std::vector<Frame> frames;         // functions on the call stacks of `stacks`
  std::vector<Module> modules;       // programs and libraries that the process had loaded
  std::optional<Overhead> overhead;  // cost of recording the process; null: the report does not say
  CUWARDEN_FIELDS(schema, tool, records, names, redacted, process, memory_cgroup, job, settings,
                  environment, coverage, hooks, unhooked_lookups, devices, accounts,
                  device_processes, totals, leaks, pointer_search, leak_groups, suppressions,
                  forecasts, library_reserves, frameworks, framework_sites, implicit_groups,
                  fragmentation, slab_classes, slab_map, slab_holders, worst_fragmentation,
                  worst_slab_classes, worst_slab_map, worst_slab_holders, incidents, incident_facts,
                  rungs, rungs_left_out, incident_holders, incident_fragmentation,
                  incident_slab_classes, incident_slab_map, pool, timeline, peak_holders,
                  allocation_sites, steps, stacks, frames, modules, overhead)
  CUWARDEN_MAY_LACK(records, names, redacted, memory_cgroup, settings, environment, hooks,
                    pointer_search, suppressions, forecasts, library_reserves, frameworks,
                    framework_sites, implicit_groups, unhooked_lookups, device_processes,
                    slab_classes, slab_map, slab_holders, worst_fragmentation, worst_slab_classes,
                    worst_slab_map, worst_slab_holders, incidents, incident_facts, rungs,
                    rungs_left_out, incident_holders, incident_fragmentation, incident_slab_classes,
                    incident_slab_map, pool, allocation_sites, steps, overhead)
};

}  // namespace cuwarden::model
