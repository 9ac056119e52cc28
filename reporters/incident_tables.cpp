#include "reporters/incident_tables.hpp"

#include <algorithm>

#include "reporters/each_row.hpp"
#include "reporters/incident_fragmentation.hpp"

namespace cuwarden {
namespace {

using ledger::Asked;
using ledger::Fact;
using ledger::RegionId;

constexpr std::string_view asked_names[] = {"memory", "context", "module", "launch",
                                            "graph",  "stream",  "limit"};
static_assert(std::size(asked_names) == ledger::asked_count);

constexpr std::string_view fact_names[] = {"total_bytes",
                                           "free_bytes",
                                           "pool_idle_bytes",
                                           "slab_locked_bytes",
                                           "rounding_bytes",
                                           "context_bytes",
                                           "module_bytes",
                                           "local_memory_bytes",
                                           "heap_bytes",
                                           "stream_bytes",
                                           "other_processes_bytes",
                                           "ram_bytes",
                                           "ram_available_bytes",
                                           "swap_free_bytes",
                                           "overcommit_mode",
                                           "commit_limit_bytes",
                                           "committed_bytes",
                                           "address_space_limit_bytes",
                                           "address_space_bytes",
                                           "largest_gap_bytes",
                                           "mappings",
                                           "max_mappings",
                                           "cgroup_limit_bytes",
                                           "cgroup_used_bytes",
                                           "compute_mode",
                                           "whole_device_bytes",
                                           "mps_limit_bytes",
                                           "nvml_free_bytes",
                                           "slab_count",
                                           "graph_rest_bytes",
                                           "given_back_bytes",
                                           "spilled_bytes",
                                           "pool_unused_bytes",
                                           "spilled_in_stream_order_bytes"};
static_assert(std::size(fact_names) == ledger::fact_count);

// Refusals for lack of memory become incidents, what a compute mode refuses a context with, and
// launches for which the device heap did not fit.
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

// All of its refusals had a good end, or not; or none had a bad one, but one had not ended.
const char* outcome_of(const ledger::IncidentView& incident) {
  if (rescues_of(incident) > incident.repeats) return "rescued";
  if (incident.recovered + rescues_of(incident) > incident.repeats) return "recovered_by_caller";
  return incident.failed == 0 ? "under_way" : "failed";
}

constexpr std::string_view rung_names[] = {"retry", "synchronise", "trim", "reclaim",
                                           "pool",  "mesh",        "wait", "spill"};
static_assert(std::size(rung_names) == ledger::rung_count);

// By most of its rescues.
Row rescuer_of(const ledger::IncidentView& incident) {
  const auto most = std::ranges::max_element(incident.rescued);
  if (*most == 0) return nullptr;
  return rung_names[static_cast<std::size_t>(most - incident.rescued.begin())];
}

std::string_view outcome_name(ledger::Rung rung, ledger::RungOutcome outcome) {
  switch (outcome) {
    case ledger::RungOutcome::served:
      return "served";
    case ledger::RungOutcome::no_memory:
      return "no_memory";
    case ledger::RungOutcome::timed_out:
      return "timed_out";
    case ledger::RungOutcome::other_error:
      return "other_error";
    case ledger::RungOutcome::unsafe:
      return "unsafe";
    case ledger::RungOutcome::failed:
      return "failed";
    case ledger::RungOutcome::under_way:
      return "under_way";
    case ledger::RungOutcome::nothing_to_do:
      break;
  }
  if (rung == ledger::Rung::synchronise) return "nothing_pending";
  if (rung == ledger::Rung::reclaim) return "nothing_given_back";
  if (rung == ledger::Rung::mesh) return "nothing_gained";
  return rung == ledger::Rung::trim ? "nothing_to_trim" : "nothing_to_do";
}

bool is_listed(const std::vector<IncidentCase>& incidents, IncidentId id) {
  return std::ranges::any_of(incidents,
                             [&](const IncidentCase& each) { return each.incident.id == id; });
}

void write_rungs(const ledger::Reader& reader, const std::vector<IncidentCase>& incidents,
                 JsonStream& json) {
  json.begin_table("rungs");
  each_row(reader, RegionId::incident_rungs, &ledger::Reader::incident_rung,
           [&](const ledger::IncidentRungView& rung) {
             if (!is_listed(incidents, rung.incident) || rung.order == 0) return;
             json.begin_row();
             json.field("incident", rung.incident.value);
             json.field("order", rung.order);
             json.field("rung", rung_names[static_cast<std::size_t>(rung.rung)]);
             json.field("outcome", outcome_name(rung.rung, rung.outcome));
             json.field("duration_ns", std::min(rung.duration_ns, largest_number));
             json.field("reclaimer", rung.name.empty() ? std::nullopt : std::optional(rung.name));
             json.end_row();
           });
  json.end_table();
}

std::optional<std::uint32_t> known_stack(const CallFrames& frames, StackId stack) {
  return frames.stacks().contains(stack.value) ? std::optional(stack.value) : std::nullopt;
}

void write_incident(const ledger::Reader& reader, const IncidentCase& given,
                    const CallFrames& frames, JsonStream& json) {
  const ledger::IncidentView& incident = given.incident;
  const Judgement judgement = judge(given);
  const auto hook = reader.hook(given.api.value);
  const auto stack = known_stack(frames, given.stack);
  Row row;
  row["id"] = incident.id.value;
  row["time_ns"] = number(incident.time_ns);
  row["api"] = text_or_null(hook ? hook->name : "");
  row["kind"] = kind_name(given.kind);
  row["asked_for"] = asked_names[static_cast<std::size_t>(incident.asked)];
  row["bytes"] = incident.bytes == 0 ? Row(nullptr) : number(incident.bytes);
  row["device"] = given.device.value < 0 ? Row(nullptr) : Row(given.device.value);
  const auto thread = reader.thread(incident.thread.value);
  row["thread"] = thread ? Row(thread->tid) : Row(nullptr);
  row["stack"] = stack ? Row(*stack) : Row(nullptr);
  row["result"] = result_name(incident.result);
  row["outcome"] = outcome_of(incident);
  row["rescued_by"] = rescuer_of(incident);
  row["verdict"] = verdict_name(judgement.verdict);
  row["repeats"] = number(incident.repeats);
  row["recovered_count"] = number(incident.recovered);
  row["rescued_count"] = number(rescues_of(incident));
  row["failed_count"] = number(incident.failed);
  row["last_ns"] = number(incident.last_ns);
  row["last_bytes"] = incident.last_bytes == 0 ? Row(nullptr) : number(incident.last_bytes);
  row["proof"] = judgement.proof;
  row["advice"] = judgement.advice;
  json.row(row);
}

}  // namespace

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
}

void write_incident_accounts(const std::vector<IncidentCase>& incidents, JsonStream& json) {
  for (const IncidentCase& incident : incidents) {
    const auto account = account_of(incident);
    if (!account) continue;
    const auto add = [&](const std::string& item, const Row& bytes) {
      Row row;
      row["device"] = incident.device.value;
      row["incident"] = incident.incident.id.value;
      row["item"] = item;
      row["bytes"] = bytes;
      json.row(row);
    };
    for (const auto& [item, bytes] : account->items) add(item, number(bytes));
    add("unexplained", account->unexplained);
  }
}

void write_device_processes(const ledger::Reader& reader,
                            const std::vector<IncidentCase>& incidents, JsonStream& json) {
  json.begin_table("device_processes");
  each_row(reader, RegionId::incident_holders, &ledger::Reader::incident_holder,
           [&](const auto& holder) {
             if (holder.group.value != 0 || holder.pid == 0) return;
             for (const IncidentCase& incident : incidents) {
               if (incident.incident.id != holder.incident || incident.device.value < 0) continue;
               Row row;
               row["device"] = incident.device.value;
               row["incident"] = holder.incident.value;
               row["pid"] = holder.pid;
               row["program"] = nullptr;
               row["used_bytes"] =
                   holder.bytes == ledger::unknown_bytes ? Row(nullptr) : number(holder.bytes);
               json.row(row);
             }
           });
  json.end_table();
}

void write_incidents(const ledger::Reader& reader, const std::vector<IncidentCase>& incidents,
                     const CallFrames& frames, JsonStream& json) {
  json.begin_table("incidents");
  for (const IncidentCase& incident : incidents) write_incident(reader, incident, frames, json);
  json.end_table();

  json.begin_table("incident_facts");
  for (const IncidentCase& incident : incidents) {
    for (std::size_t i = 0; i < ledger::fact_count; ++i) {
      const auto value = incident.incident.fact(static_cast<Fact>(i));
      if (!value) continue;
      Row row;
      row["incident"] = incident.incident.id.value;
      row["fact"] = fact_names[i];
      row["value"] = *value == ledger::no_limit ? Row(nullptr) : number(*value);
      json.row(row);
    }
  }
  json.end_table();

  write_rungs(reader, incidents, json);
  json.begin_table("incident_holders");
  each_row(reader, RegionId::incident_holders, &ledger::Reader::incident_holder,
           [&](const auto& holder) {
             const auto group = reader.group(holder.group.value);
             if (!group || !is_listed(incidents, holder.incident)) return;
             const auto stack = known_stack(frames, group->stack);
             Row row;
             row["incident"] = holder.incident.value;
             row["stack"] = stack ? Row(*stack) : Row(nullptr);
             row["kind"] = kind_name(group->kind);
             row["count"] = number(holder.count);
             row["bytes"] = number(holder.bytes);
             row["growth_bytes_per_minute"] = holder.growth_bytes_per_minute
                                                  ? number(*holder.growth_bytes_per_minute)
                                                  : Row(nullptr);
             row["slab_locked_bytes"] =
                 holder.slab_locked_bytes ? number(*holder.slab_locked_bytes) : Row(nullptr);
             json.row(row);
           });
  json.end_table();
  write_incident_fragmentation(reader, incidents, json);
}

}  // namespace cuwarden
