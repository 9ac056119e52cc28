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
  Tool tool;
  // Statements whether all recorded allocations are in the report, and whether all names of
  // functions could be looked up. Null: the report is older than these fields, so only `tool` says
  // what is missing.
  std::optional<Completeness> records, names;
  bool redacted = false;  // true if host, user, folders and environment were taken out
  Process process;
  std::optional<MemoryCgroup> memory_cgroup;
  Job job;
  std::vector<Setting> settings;
  std::vector<Variable> environment;
  Completeness coverage;  // statement whether the hooks saw all of the process's CUDA calls
  std::vector<HookCalls> hooks;
  std::vector<UnhookedLookup> unhooked_lookups;
  std::vector<Device> devices;
  std::vector<AccountItem> accounts;
  std::vector<DeviceProcess> device_processes;
  std::vector<Total> totals;
  Leaks leaks;
  std::vector<LeakGroup> leak_groups;
  std::vector<Fragmentation> fragmentation;
  std::vector<SlabClass> slab_classes;
  std::vector<Slab> slab_map;
  std::vector<SlabHolder> slab_holders;
  std::vector<WorstFragmentation> worst_fragmentation;
  std::vector<SlabClass> worst_slab_classes;
  std::vector<WorstSlab> worst_slab_map;
  std::vector<WorstSlabHolder> worst_slab_holders;
  std::vector<Incident> incidents;
  std::vector<IncidentFact> incident_facts;
  std::vector<Rung> rungs;
  std::vector<IncidentHolder> incident_holders;
  std::vector<IncidentFragmentation> incident_fragmentation;
  std::vector<IncidentSlabClass> incident_slab_classes;
  std::vector<IncidentSlab> incident_slab_map;
  std::optional<Pool> pool;  // null: the report is older than the pool
  std::vector<Bucket> timeline;
  std::vector<PeakHolder> peak_holders;
  std::vector<Stack> stacks;
  std::vector<Frame> frames;
  std::vector<Module> modules;
  std::optional<Overhead> overhead;
  CUWARDEN_FIELDS(schema, tool, records, names, redacted, process, memory_cgroup, job, settings,
                  environment, coverage, hooks, unhooked_lookups, devices, accounts,
                  device_processes, totals, leaks, leak_groups, fragmentation, slab_classes,
                  slab_map, slab_holders, worst_fragmentation, worst_slab_classes, worst_slab_map,
                  worst_slab_holders, incidents, incident_facts, rungs, incident_holders,
                  incident_fragmentation, incident_slab_classes, incident_slab_map, pool, timeline,
                  peak_holders, stacks, frames, modules, overhead)
  CUWARDEN_MAY_LACK(records, names, redacted, memory_cgroup, settings, environment, hooks,
                    unhooked_lookups, device_processes, slab_classes, slab_map, slab_holders,
                    worst_fragmentation, worst_slab_classes, worst_slab_map, worst_slab_holders,
                    incidents, incident_facts, rungs, incident_holders, incident_fragmentation,
                    incident_slab_classes, incident_slab_map, pool, overhead)
};

}  // namespace cuwarden::model
