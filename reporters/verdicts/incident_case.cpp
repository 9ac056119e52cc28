#include "reporters/verdicts/incident_case.hpp"

#include <algorithm>

#include "reporters/model/each_row.hpp"
#include "reporters/model/values.hpp"
#include "reporters/symbols/cuda_frames.hpp"

namespace cuwarden {

using ledger::Fact;

void Account::add(std::string item, std::uint64_t bytes) {
  if (bytes == 0 || bytes > model::largest_number) return;
  items.emplace_back(std::move(item), bytes);
  unexplained -= static_cast<std::int64_t>(bytes);
}

void Account::add_live(Kind kind, std::uint64_t bytes, const Spilled& spilled) {
  const std::uint64_t in_order = std::min(spilled.in_stream_order_bytes, spilled.bytes);
  std::uint64_t elsewhere = 0;
  if (kind == Kind::stream_ordered) elsewhere = in_order;
  if (kind == Kind::device) elsewhere = spilled.bytes - in_order;
  add("live_" + std::string(kind_name(kind)), bytes - std::min(bytes, elsewhere));
}

void Account::add_other_processes(std::uint64_t bytes) {
  if (bytes <= model::largest_number)
    add("other_processes", bytes - std::min(bytes, of("live_imported")));
}

std::uint64_t Account::of(std::string_view item) const noexcept {
  for (const auto& [name, bytes] : items)
    if (name == item) return bytes;
  return 0;
}

const std::string& StackModules::of(StackId id) {
  const auto [entry, is_new] = known_.try_emplace(id.value);
  const auto stack = is_new ? reader_.stack(id.value) : std::nullopt;
  if (!stack) return entry->second;
  // CUDA's own frames are fewer.
  constexpr std::size_t most_frames = 64;
  const std::uint64_t modules = reader_.rows(ledger::RegionId::modules);
  for (const ledger::Frame frame :
       stack->frames.first(std::min(stack->frames.size(), most_frames))) {
    if (modules > rows_left_) break;
    rows_left_ -= modules;
    const auto module = reader_.module_at(frame, stack->module_epoch);
    if (!module || is_cuda_library(module->path)) continue;
    entry->second = module->path;
    break;
  }
  return entry->second;
}

std::optional<IncidentCase> case_of(const ledger::Reader& reader, GroupId group_id,
                                    const ledger::IncidentFacts& facts,
                                    std::span<const ledger::IncidentHolding> holdings,
                                    StackModules& modules) {
  const auto group = reader.group(group_id.value);
  if (!group) return std::nullopt;
  IncidentCase made;
  static_cast<ledger::IncidentFacts&>(made.incident) = facts;
  made.incident.group = group_id;
  made.kind = group->kind;
  made.device = group->device;
  made.api = group->api;
  made.stack = group->stack;
  made.program = std::string(reader.process().program);
  made.requester = modules.of(group->stack);
  const auto device = device_row(reader, group->device);
  if (device && is_slice(*device)) made.slice = device->name;
  each_row(reader, ledger::RegionId::settings, &ledger::Reader::setting, [&](const auto& setting) {
    if (setting.name == "CUWARDEN_MESH" && setting.value == "off")
      made.meshing_wants = "CUWARDEN_MESH=on";
    if (setting.name == "CUWARDEN_MESH_PAUSE" && setting.value == "0ms" &&
        made.meshing_wants.empty())
      made.meshing_wants = "CUWARDEN_MESH_PAUSE above 0";
  });
  for (const ledger::IncidentHolding& holding : holdings) {
    const auto held = reader.group(holding.group.value);
    if (!held || !is_in_device_account(held->kind) || held->kind == Kind::imported) continue;
    if (holding.growth_bytes_per_minute) made.growing_bytes += holding.bytes;
    const std::string& module = modules.of(held->stack);
    const auto known =
        std::ranges::find(made.modules, module, [](const auto& each) { return each.first; });
    if (known != made.modules.end())
      known->second += holding.bytes;
    else
      made.modules.emplace_back(module, holding.bytes);
  }
  return made;
}

std::optional<IncidentCase> case_of(const ledger::Reader& reader,
                                    const ledger::IncidentView& incident, StackModules& modules) {
  // A writer keeps fewer.
  constexpr std::size_t most_holders = 32;
  std::vector<ledger::IncidentHolding> holdings;
  each_row(reader, ledger::RegionId::incident_holders, &ledger::Reader::incident_holder,
           [&](const ledger::IncidentHolderView& holder) {
             if (holder.incident == incident.id && holder.group.value != 0 &&
                 holdings.size() < most_holders)
               holdings.push_back(holder);
           });
  auto made = case_of(reader, incident.group, incident, holdings, modules);
  if (made) made->incident = incident;
  return made;
}

// "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
bool is_slice(const ledger::DeviceView& device) noexcept {
  return device.name.find(" MIG ") != std::string_view::npos;
}

std::optional<std::uint64_t> free_bytes_of(const ledger::IncidentFacts& incident) {
  const auto free = incident.fact(Fact::free_bytes);
  return free ? free : incident.fact(Fact::nvml_free_bytes);
}

std::optional<Account> account_of(DeviceOrdinal device, const ledger::IncidentFacts& incident) {
  const auto total = incident.fact(Fact::total_bytes), free = free_bytes_of(incident);
  if (device.value < 0 || !total || !free || *total < *free || *total > model::largest_number)
    return std::nullopt;
  Account account(*total - *free);
  for (std::uint8_t kind = 0; kind < kind_count; ++kind) {
    if (!is_in_device_account(static_cast<Kind>(kind))) continue;
    account.add_live(static_cast<Kind>(kind), incident.live_bytes[kind],
                     {incident.fact(Fact::spilled_bytes).value_or(0),
                      incident.fact(Fact::spilled_in_stream_order_bytes).value_or(0)});
  }
  constexpr std::pair<const char*, Fact> items[] = {{"slab_waste", Fact::slab_locked_bytes},
                                                    {"rounding_waste", Fact::rounding_bytes},
                                                    {"pool", Fact::arena_unused_bytes},
                                                    {"context", Fact::context_bytes},
                                                    {"modules", Fact::module_bytes},
                                                    {"local_memory", Fact::local_memory_bytes},
                                                    {"heap", Fact::heap_bytes},
                                                    {"streams", Fact::stream_bytes}};
  // Memory that graphs use besides their allocations is idle, and no free waits for it.
  account.add("mempool_idle", incident.fact(Fact::memory_pool_idle_bytes).value_or(0) +
                                  incident.fact(Fact::graph_rest_bytes).value_or(0));
  for (const auto& [item, fact] : items) account.add(item, incident.fact(fact).value_or(0));
  account.add_other_processes(incident.fact(Fact::other_processes_bytes).value_or(0));
  return account;
}

}  // namespace cuwarden
