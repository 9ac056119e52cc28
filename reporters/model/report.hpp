// The report: a struct for each object and each row of a table of `cuwarden.report/1`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reporters/model/code.hpp"
#include "reporters/model/fragmentation.hpp"
#include "reporters/model/incidents.hpp"
#include "reporters/model/memory.hpp"
#include "reporters/model/process.hpp"

namespace cuwarden::model {

// Name and version of the report's format.
inline constexpr char report_schema[] = "cuwarden.report/1";

// The report about one process: the whole JSON document. report.schema.json describes each field.
struct Report {
  std::string schema = report_schema;
  Tool tool;  // program that wrote the report, and reasons why the report is incomplete
  // records: statement whether all allocations that the hooks saw are in the report. names:
  // statement whether all functions, files and lines were found, those of system libraries aside.
  // Their reasons are also in `tool`. Null: the report is older than these fields.
  std::optional<Completeness> records, names;
  bool redacted = false;  // true if redact() has taken out host, user, folders and environment
  Process process;
  std::optional<MemoryCgroup> memory_cgroup;  // null: unknown, or the cgroup is gone
  Job job;
  std::vector<Setting> settings;      // cuwarden's settings in the process
  std::vector<Variable> environment;  // environment variables about CUDA and jobs
  Completeness coverage;         // statement whether the hooks saw all of the process's CUDA calls
  std::vector<HookCalls> hooks;  // hooked CUDA functions that the program called
  // Versions of hooked functions that the program looked up by name and that have no hook.
  std::vector<UnhookedLookup> unhooked_lookups;
  std::vector<Device> devices;
  std::vector<AccountItem> accounts;  // parts of each device's used bytes, also at refused requests
  std::vector<DeviceProcess> device_processes;  // other processes that held memory of devices
  std::vector<Total> totals;                    // sums of allocations by kind and device
  Leaks leaks;                                  // sums of leak_groups
  std::vector<LeakGroup> leak_groups;
  std::vector<LibraryReserve> library_reserves;  // live memory that libraries keep for themselves
  std::vector<ImplicitGroup> implicit_groups;
  std::vector<Fragmentation> fragmentation;
  // Slabs, the driver's 2 MiB pages of small requests, at the end of the process: by size class,
  // one by one, and by the call stacks that keep them partly live.
  std::vector<SlabClass> slab_classes;
  std::vector<Slab> slab_map;
  std::vector<SlabHolder> slab_holders;
  // The moment of the run at which most freed memory of each device was locked in slabs, and the
  // slabs at that moment.
  std::vector<WorstFragmentation> worst_fragmentation;
  std::vector<SlabClass> worst_slab_classes;
  std::vector<WorstSlab> worst_slab_map;
  std::vector<WorstSlabHolder> worst_slab_holders;
  // Requests that were refused for lack of memory, and tables about the moments of these refusals.
  std::vector<Incident> incidents;
  std::vector<IncidentFact> incident_facts;
  std::vector<Rung> rungs;
  std::vector<RungLeftOut> rungs_left_out;
  std::vector<IncidentHolder> incident_holders;
  std::vector<IncidentFragmentation> incident_fragmentation;
  std::vector<IncidentSlabClass> incident_slab_classes;
  std::vector<IncidentSlab> incident_slab_map;
  std::optional<Pool> pool;      // null: the report is older than the pool
  std::vector<Bucket> timeline;  // live bytes over time, by kind and device
  // Call stacks that held memory when most bytes of a kind were live.
  std::vector<PeakHolder> peak_holders;
  std::vector<Stack> stacks;
  std::vector<Frame> frames;
  std::vector<Module> modules;
  std::optional<Overhead> overhead;  // cost of recording; null: the report does not say
  CUWARDEN_FIELDS(schema, tool, records, names, redacted, process, memory_cgroup, job, settings,
                  environment, coverage, hooks, unhooked_lookups, devices, accounts,
                  device_processes, totals, leaks, leak_groups, library_reserves, implicit_groups,
                  fragmentation, slab_classes, slab_map, slab_holders, worst_fragmentation,
                  worst_slab_classes, worst_slab_map, worst_slab_holders, incidents, incident_facts,
                  rungs, rungs_left_out, incident_holders, incident_fragmentation,
                  incident_slab_classes, incident_slab_map, pool, timeline, peak_holders, stacks,
                  frames, modules, overhead)
  CUWARDEN_MAY_LACK(records, names, redacted, memory_cgroup, settings, environment, hooks,
                    library_reserves, implicit_groups, unhooked_lookups, device_processes,
                    slab_classes, slab_map, slab_holders, worst_fragmentation, worst_slab_classes,
                    worst_slab_map, worst_slab_holders, incidents, incident_facts, rungs,
                    rungs_left_out, incident_holders, incident_fragmentation, incident_slab_classes,
                    incident_slab_map, pool, overhead)
};

}  // namespace cuwarden::model
