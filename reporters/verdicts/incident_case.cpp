#include "reporters/verdicts/incident_case.hpp"

#include <algorithm>

#include "reporters/model/each_row.hpp"
#include "reporters/model/values.hpp"
#include "reporters/owners/cuda_frames.hpp"
#include "runtime_hooks/core/caching_allocators.hpp"

namespace cuwarden {

using ledger::Fact;

namespace {

// Adds the bytes to those of the key in a list of pairs.
template <class Key>
void add_to(std::vector<std::pair<Key, std::uint64_t>>& list, const Key& key, std::uint64_t bytes) {
  const auto known = std::ranges::find(list, key, [](const auto& each) { return each.first; });
  if (known != list.end())
    known->second += bytes;
  else
    list.emplace_back(key, bytes);
}

// Adds the bytes that a group of allocations held at the refusal to the reserve to which the group
// belongs. `asking`: reserve of the allocator that made the refused request and has emptied its
// cache by itself; null if there is none.
void add_to_reserves(IncidentCase& made, const ledger::GroupView& held, std::uint64_t bytes,
                     const LibraryReserve* asking, StackModules& modules) {
  const LibraryReserve* const reserve =
      reserve_of(modules.asker_of(held.stack), held.kind, held.device);
  if (reserve != nullptr && reserve != asking) add_to(made.reserves, reserve, bytes);
}

}  // namespace

const StackModules::Modules& StackModules::modules_of(StackId id) {
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
    if (entry->second.caller.empty()) entry->second.caller = module->path;
    if (is_between_cuda_and_asker(module->path)) continue;
    entry->second.asker = module->path;
    break;
  }
  return entry->second;
}

std::optional<IncidentCase> case_of(const ledger::Reader& reader, GroupId group_id,
                                    const ledger::IncidentFacts& facts,
                                    std::span<const ledger::IncidentHolding> holdings,
                                    const ledger::NamedProcesses& others, StackModules& modules) {
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
  made.others = others;
  const auto device = device_row(reader, group->device);
  if (device && is_slice(*device)) made.slice = device->name;
  each_row(reader, ledger::RegionId::settings, &ledger::Reader::setting, [&](const auto& setting) {
    if (setting.name == "CUWARDEN_MESH" && setting.value == "off")
      made.meshing_wants = "CUWARDEN_MESH=on";
    if (setting.name == "CUWARDEN_MESH_PAUSE" && setting.value == "0ms" &&
        made.meshing_wants.empty())
      made.meshing_wants = "CUWARDEN_MESH_PAUSE above 0";
    if (setting.name == "CUWARDEN_POOL") made.rescues = setting.value != "off";
    if (setting.name == "CUWARDEN_FRAMEWORKS") made.asks_frameworks = setting.value == "on";
    if (setting.name == "CUWARDEN_WAIT") made.waits = !setting.value.starts_with('0');
    if (setting.name == "CUWARDEN_SPILL") made.spills = !setting.value.starts_with('0');
  });
  const std::string& asker = modules.asker_of(group->stack);
  const LibraryReserve* const asking =
      asks_again_when_refused(asker) ? reserve_of(asker, group->kind, group->device) : nullptr;
  std::uint64_t growing_blocks = 0;
  for (const ledger::IncidentHolding& holding : holdings) {
    const auto held = reader.group(holding.group.value);
    if (!held) continue;
    if (held->kind == Kind::framework_block) {
      if (holding.growth_bytes_per_minute) growing_blocks += holding.bytes;
      continue;
    }
    add_to_reserves(made, *held, holding.bytes, asking, modules);
    if (!is_in_device_account(held->kind) || held->kind == Kind::imported) continue;
    if (holding.growth_bytes_per_minute) made.growing_bytes += holding.bytes;
    add_to(made.modules, modules.of(held->stack), holding.bytes);
  }
  // Blocks of frameworks lie in other memory, which may grow with them.
  made.growing_bytes = std::max(made.growing_bytes, growing_blocks);
  std::ranges::stable_sort(made.reserves, std::ranges::greater(),
                           [](const auto& each) { return each.second; });
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
  ledger::NamedProcesses others;
  each_row(reader, ledger::RegionId::incident_processes, &ledger::Reader::incident_process,
           [&](const ledger::IncidentProcessView& process) {
             if (process.incident == incident.id) others.add(process);
           });
  auto made = case_of(reader, incident.group, incident, holdings, others, modules);
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

bool is_integrated(const ledger::IncidentFacts& incident) noexcept {
  return incident.fact(Fact::integrated) == 1u;
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
  constexpr std::pair<Holder, Fact> items[] = {{Holder::slab_waste, Fact::slab_locked_bytes},
                                               {Holder::rounding_waste, Fact::rounding_bytes},
                                               {Holder::pool, Fact::arena_unused_bytes},
                                               {Holder::context, Fact::context_bytes},
                                               {Holder::local_memory, Fact::local_memory_bytes},
                                               {Holder::heap, Fact::heap_bytes}};
  // Memory that graphs use besides their allocations is idle, and no free waits for it.
  account.add(Holder::mempool_idle, incident.fact(Fact::memory_pool_idle_bytes).value_or(0) +
                                        incident.fact(Fact::graph_rest_bytes).value_or(0));
  const auto bytes = [&](Fact fact) { return incident.fact(fact).value_or(0); };
  for (const auto& [holder, fact] : items) account.add(holder, bytes(fact));
  account.add_objects(
      {bytes(Fact::module_bytes), bytes(Fact::stream_bytes), bytes(Fact::graph_bytes)},
      {bytes(Fact::library_module_bytes), bytes(Fact::library_stream_bytes),
       bytes(Fact::library_graph_bytes)});
  account.add_other_processes(incident.fact(Fact::other_processes_bytes).value_or(0));
  // The driver counts the host's page cache as used, but the kernel drops it when memory is needed.
  const auto available = incident.fact(Fact::ram_available_bytes);
  if (is_integrated(incident) && available && account.unexplained() > 0)
    account.add(Holder::page_cache,
                std::min(std::min(*available, *total) - std::min(*available, *free),
                         static_cast<std::uint64_t>(account.unexplained())));
  return account;
}

}  // namespace cuwarden
