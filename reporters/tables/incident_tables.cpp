#include "reporters/tables/incident_tables.hpp"

#include <algorithm>
#include <set>

#include "reporters/model/each_row.hpp"
#include "reporters/tables/memory_tables.hpp"
#include "reporters/tables/process_facts.hpp"

namespace cuwarden {
namespace {

using ledger::Fact;
using ledger::RegionId;

constexpr std::string_view asked_names[] = {"memory", "context", "module",  "launch", "graph",
                                            "stream", "limit",   "texture", "copy"};
static_assert(std::size(asked_names) == ledger::asked_count);

constexpr std::string_view fact_names[] = {
#define FACT(name) #name,
#define FACT_AS(name, word) word,
#include "runtime_hooks/ledger/format/facts.def"
};
static_assert(std::size(fact_names) == ledger::fact_count);

// Returns the name of an error that becomes an incident: a lack of memory, a refusal by a compute
// mode, or a launch for which the device heap did not fit.
std::string result_name(int result) {
  switch (result) {
    case out_of_memory:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case 46:
      return "CUDA_ERROR_DEVICE_UNAVAILABLE";
    case 701:
      return "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
    case 999:
      return "CUDA_ERROR_UNKNOWN";
    default:
      return "CUDA_ERROR_" + std::to_string(result);
  }
}

// Returns the outcome of the incident. `rescued` and `recovered_by_caller` hold only if all of its
// refused requests were served in the end. `under_way`: none has failed, but one was still being
// tried.
const char* outcome_of(const ledger::IncidentView& incident) {
  if (rescues_of(incident) > incident.repeats) return "rescued";
  if (incident.recovered + rescues_of(incident) > incident.repeats) return "recovered_by_caller";
  return incident.failed == 0 ? "under_way" : "failed";
}

// Names of the rungs in reports. Reports call the rung `give_back` after the pool whose memory it
// gives back.
constexpr std::string_view rung_names[] = {"retry", "synchronise", "trim", "reclaim",
                                           "pool",  "mesh",        "wait", "spill"};
static_assert(std::size(rung_names) == ledger::rung_count);

// Returns the rung that served most of the incident's requests; null if none was served.
model::Text rescuer_of(const ledger::IncidentView& incident) {
  const auto most = std::ranges::max_element(incident.rescued);
  if (*most == 0) return std::nullopt;
  return model::text_or_null(rung_names[static_cast<std::size_t>(most - incident.rescued.begin())]);
}

constexpr std::string_view outcome_names[] = {"served",    "no_memory",   "nothing_to_do",
                                              "timed_out", "other_error", "unsafe",
                                              "failed",    "under_way"};
static_assert(std::size(outcome_names) == ledger::rung_outcome_count);

// Returns the outcome's name. A rung that found nothing to do may have an own word for that.
std::string_view outcome_name(ledger::Rung rung, ledger::RungOutcome outcome) {
  if (outcome != ledger::RungOutcome::nothing_to_do)
    return outcome_names[static_cast<std::size_t>(outcome)];
  if (rung == ledger::Rung::synchronise) return "nothing_pending";
  if (rung == ledger::Rung::reclaim) return "nothing_given_back";
  if (rung == ledger::Rung::mesh) return "nothing_gained";
  return rung == ledger::Rung::trim ? "nothing_to_trim" : "nothing_to_do";
}

// The names of the reasons for which rungs are left out, by LeftOut. A rung without a reason has no
// row.
constexpr std::string_view left_out_names[] = {"",
                                               "turned_off",
                                               "turned_off",
                                               "nothing_there",
                                               "allocator_asks_again",
                                               "larger_than_device",
                                               "small",
                                               "own_memory",
                                               "much_is_free",
                                               "in_vain_before",
                                               "host_memory",
                                               "other_device",
                                               "drivers_memory",
                                               "no_allocation",
                                               "memory_pool",
                                               "not_supported",
                                               "confined_thread",
                                               "in_reclaimer",
                                               "compute_mode",
                                               "not_repeated",
                                               "page_cache"};
static_assert(std::size(left_out_names) == ledger::left_out_count);

// Returns the name of the setting that turns the rung off; null if the reason is another one.
model::Text setting_against(const ledger::Reader& reader, ledger::Rung rung,
                            ledger::LeftOut reason) {
  if (reason == ledger::LeftOut::rescues_off) return "CUWARDEN_POOL";
  if (reason != ledger::LeftOut::turned_off) return std::nullopt;
  switch (rung) {
    case ledger::Rung::mesh:
      return setting_of(reader, "CUWARDEN_MESH") == "off" ? "CUWARDEN_MESH" : "CUWARDEN_MESH_PAUSE";
    case ledger::Rung::reclaim:
      return "CUWARDEN_SYNC_TIMEOUT";
    case ledger::Rung::wait:
      return "CUWARDEN_WAIT";
    case ledger::Rung::spill:
      return "CUWARDEN_SPILL";
    default:
      return std::nullopt;
  }
}

constexpr std::string_view seen_by_names[] = {"nvml", "device_file"};
static_assert(std::size(seen_by_names) == ledger::seen_by_count);
// The names of states of processes, by RunState; empty: unknown.
constexpr std::string_view run_state_names[] = {"", "alive", "zombie", "stuck"};
static_assert(std::size(run_state_names) == ledger::run_state_count);

model::DeviceProcess process_row(model::Id device, const ledger::IncidentProcessView& process) {
  model::DeviceProcess row;
  row.device = device;
  row.incident = process.incident.value;
  row.pid = process.pid;
  row.program = model::text_or_null(process.program);
  if (process.bytes != ledger::unknown_value) row.used_bytes = process.bytes;
  row.seen_by = seen_by_names[static_cast<std::size_t>(process.seen_by)];
  row.state = model::text_or_null(run_state_names[static_cast<std::size_t>(process.run_state)]);
  row.user = model::text_or_null(process.user);
  if (process.start_realtime_ns != 0) row.start = iso_8601(process.start_realtime_ns);
  row.job = model::text_or_null(process.job);
  row.container = model::text_or_null(process.container);
  row.pod = model::text_or_null(process.pod);
  row.unit = model::text_or_null(process.unit);
  if (process.parent != 0) row.parent = process.parent;
  row.parent_program = model::text_or_null(process.parent_program);
  return row;
}

bool is_listed(const std::vector<IncidentCase>& incidents, IncidentId id) {
  return std::ranges::any_of(incidents,
                             [&](const IncidentCase& each) { return each.incident.id == id; });
}

}  // namespace

std::string_view rung_name(ledger::Rung rung) { return rung_names[static_cast<std::size_t>(rung)]; }

std::string_view asked_name(ledger::Asked asked) {
  return asked_names[static_cast<std::size_t>(asked)];
}

std::vector<IncidentCase> all_incidents(const ledger::Reader& reader) {
  std::vector<IncidentCase> all;
  StackModules modules(reader);
  each_row(reader, RegionId::incidents, &ledger::Reader::incident,
           [&](const ledger::IncidentView& incident) {
             if (auto made = case_of(reader, incident, modules)) all.push_back(std::move(*made));
           });
  std::ranges::stable_sort(all, {}, [](const auto& made) { return made.incident.time_ns; });
  return all;
}

void add_stacks(const ledger::Reader& reader, const std::vector<IncidentCase>& incidents,
                CallFrames& frames) {
  for (const IncidentCase& incident : incidents) frames.add_stack(incident.stack);
  each_row(reader, RegionId::incident_holders, &ledger::Reader::incident_holder,
           [&](const auto& holder) {
             if (const auto group = reader.group(holder.group.value))
               frames.add_stack(group->stack);
           });
  std::set<std::uint32_t> of_slabs;
  each_row(reader, RegionId::incident_slabs, &ledger::Reader::incident_slab,
           [&](const ledger::IncidentSlabView& slab) {
             for (const GroupId group : slab.groups) of_slabs.insert(group.value);
           });
  for (const std::uint32_t id : of_slabs)
    if (const auto group = reader.group(id)) frames.add_stack(group->stack);
}

void put_device_processes(const ledger::Reader& reader, const std::vector<IncidentCase>& incidents,
                          Put<model::DeviceProcess> put) {
  each_row(reader, RegionId::incident_processes, &ledger::Reader::incident_process,
           [&](const ledger::IncidentProcessView& process) {
             for (const IncidentCase& incident : incidents) {
               const auto device = device_id(incident.device);
               if (incident.incident.id == process.incident && device)
                 put(process_row(*device, process));
             }
           });
}

void put_incidents(const ledger::Reader& reader, const std::vector<IncidentCase>& incidents,
                   const CallFrames& frames, Put<model::Incident> put) {
  for (const IncidentCase& given : incidents) {
    const ledger::IncidentView& incident = given.incident;
    Judgement judgement = judge(given);
    const auto hook = reader.hook(given.api.value);
    const auto thread = reader.thread(incident.thread.value);
    const auto unless_0 = [](std::uint64_t bytes) {
      return bytes == 0 ? model::Figure() : model::Figure(bytes);
    };
    model::Incident row;
    row.id = incident.id.value;
    row.time_ns = incident.time_ns;
    row.api = model::text_or_null(hook ? hook->name : "");
    row.kind = kind_name(given.kind);
    row.asked_for = asked_name(incident.asked);
    row.bytes = unless_0(incident.bytes);
    row.device = device_id(given.device);
    if (thread) row.thread = thread->tid;
    row.stack = frames.known_stack(given.stack);
    row.result = result_name(incident.result);
    row.outcome = outcome_of(incident);
    row.rescued_by = rescuer_of(incident);
    row.verdict = verdict_name(judgement.verdict);
    row.repeats = incident.repeats;
    row.recovered_count = incident.recovered;
    row.rescued_count = rescues_of(incident);
    row.failed_count = incident.failed;
    row.last_ns = incident.last_ns;
    row.last_bytes = unless_0(incident.last_bytes);
    row.proof = std::move(judgement.proof);
    row.advice = std::move(judgement.advice);
    put(row);
  }
}

void put_incident_facts(const std::vector<IncidentCase>& incidents, Put<model::IncidentFact> put) {
  for (const IncidentCase& incident : incidents) {
    for (std::size_t i = 0; i < ledger::fact_count; ++i) {
      if (const auto value = incident.incident.fact(static_cast<Fact>(i)))
        put({incident.incident.id.value, std::string(fact_names[i]),
             *value == ledger::no_limit ? model::Figure() : *value});
    }
  }
}

void put_rungs(const ledger::Reader& reader, const std::vector<IncidentCase>& incidents,
               Put<model::Rung> put) {
  each_row(reader, RegionId::incident_rungs, &ledger::Reader::incident_rung,
           [&](const ledger::IncidentRungView& rung) {
             if (!is_listed(incidents, rung.incident) || rung.order == 0) return;
             put({.incident = rung.incident.value,
                  .order = rung.order,
                  .rung = std::string(rung_name(rung.rung)),
                  .outcome = std::string(outcome_name(rung.rung, rung.outcome)),
                  .duration_ns = std::min(rung.duration_ns, model::largest_number),
                  .reclaimer = model::text_or_null(rung.name)});
           });
}

void put_rungs_left_out(const ledger::Reader& reader, const std::vector<IncidentCase>& incidents,
                        Put<model::RungLeftOut> put) {
  for (const IncidentCase& given : incidents) {
    for (std::size_t i = 0; i < ledger::rung_count; ++i) {
      const ledger::LeftOut reason = given.incident.left_out[i];
      if (reason == ledger::LeftOut::none) continue;
      put({given.incident.id.value, std::string(rung_name(static_cast<ledger::Rung>(i))),
           std::string(left_out_names[static_cast<std::size_t>(reason)]),
           setting_against(reader, static_cast<ledger::Rung>(i), reason)});
    }
  }
}

void put_incident_holders(const ledger::Reader& reader, const std::vector<IncidentCase>& incidents,
                          const CallFrames& frames, Put<model::IncidentHolder> put) {
  each_row(reader, RegionId::incident_holders, &ledger::Reader::incident_holder,
           [&](const auto& holder) {
             const auto group = reader.group(holder.group.value);
             if (!group || !is_listed(incidents, holder.incident)) return;
             put({.incident = holder.incident.value,
                  .stack = frames.known_stack(group->stack),
                  .kind = std::string(kind_name(group->kind)),
                  .count = holder.count,
                  .bytes = holder.bytes,
                  .growth_bytes_per_minute = holder.growth_bytes_per_minute,
                  .slab_locked_bytes = holder.slab_locked_bytes});
           });
}

}  // namespace cuwarden
