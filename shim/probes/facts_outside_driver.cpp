#include "shim/probes/facts_outside_driver.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "reporters/model/each_row.hpp"
#include "reporters/tables/groups/frameworks.hpp"
#include "reporters/tables/groups/leak_groups.hpp"
#include "reporters/tables/groups/library_reserves.hpp"
#include "reporters/tables/slabs.hpp"
#include "reporters/verdicts/incident_case.hpp"
#include "runtime_hooks/tracking/devices/neighbours.hpp"
#include "shim/probes/host_limits.hpp"
#include "shim/probes/memory_of_others.hpp"
#include "shim/probes/mps_limit.hpp"
#include "shim/probes/nvml_cgroup_limit.hpp"
#include "shim/probes/nvml_memory.hpp"
#include "shim/probes/other_process.hpp"

namespace cuwarden::shim {
namespace {

using ledger::Fact;

constexpr std::size_t most_lockers = 4;

// Notes the groups of allocations that lock the most bytes of slabs.
void note_lockers(const ledger::Reader& live, const Fragmentation& found,
                  ledger::IncidentHoldings& holdings) {
  std::vector<std::pair<std::uint64_t, GroupId>> lockers;
  for (const auto& [group, holder] : found.holders)
    if (holder.locked_bytes > 0) lockers.push_back({holder.locked_bytes, {group}});
  std::ranges::sort(lockers, std::greater{}, [](const auto& locker) { return locker.first; });
  lockers.resize(std::min(lockers.size(), most_lockers));
  for (const auto& [locked, id] : lockers) {
    const auto group = live.group(id.value);
    ledger::IncidentHolding* const holding = group ? holdings.of(id) : nullptr;
    if (holding == nullptr) continue;
    // The group locks slabs, and is not among the largest holders.
    if (holding->count == 0) {
      holding->count = group->live_count;
      holding->bytes = group->live_bytes;
    }
    holding->slab_locked_bytes = locked;
  }
}

void note_slabs(ledger::Incidents& rows, const ledger::Reader& live, rescue::Incident& incident) {
  const DeviceOrdinal device = incident.request.device;
  if (device == no_device) return;
  const auto all = find_fragmentation(live);
  const auto found = all.find(device.value);
  const Fragmentation none;
  const Fragmentation& here = found == all.end() ? none : found->second;
  incident.facts.set(Fact::slab_locked_bytes, here.locked_bytes);
  incident.facts.set(Fact::rounding_bytes, here.rounding_bytes);
  incident.facts.set(Fact::slab_count, here.slabs.size());
  for (const auto& [class_bytes, row] : here.classes)
    rows.add_slab_class(incident.id, {class_bytes, row.slab_count, row.live_count, row.live_bytes});
  std::vector<ledger::SlabRow> slabs;
  slabs.reserve(here.slabs.size());
  for (const LiveSlab& slab : here.slabs)
    slabs.push_back({.address = {slab.address},
                     .live_count = slab.live_count,
                     .live_bytes = slab.live_bytes,
                     .groups = slab.groups});
  rows.add_slabs(incident.id, slabs);
  note_lockers(live, here, incident.holdings);
}

void note_growth(const std::vector<LeakGroup>& groups, ledger::IncidentHoldings& holdings) {
  for (ledger::IncidentHolding& holding : holdings.all())
    for (const LeakGroup& group : groups)
      if (group.group.id == holding.group)
        if (const auto rate = group.growth.bytes_per_minute())
          holding.growth_bytes_per_minute = *rate;
}

void note_host(ledger::IncidentFacts& facts) {
  static_assert(HostLimits::unknown == ledger::unknown_value &&
                HostLimits::unlimited == ledger::no_limit);
  const HostLimits limits = read_host_limits();
  const std::pair<Fact, std::uint64_t> known[] = {
      {Fact::ram_bytes, limits.ram_bytes},
      {Fact::ram_available_bytes, limits.ram_available_bytes},
      {Fact::swap_free_bytes, limits.swap_free_bytes},
      {Fact::overcommit_mode, limits.overcommit_mode},
      {Fact::commit_limit_bytes, limits.commit_limit_bytes},
      {Fact::committed_bytes, limits.committed_bytes},
      {Fact::address_space_limit_bytes, limits.address_space_limit_bytes},
      {Fact::address_space_bytes, limits.address_space_bytes},
      {Fact::largest_gap_bytes, limits.largest_gap_bytes},
      {Fact::mappings, limits.mappings},
      {Fact::max_mappings, limits.max_mappings},
      {Fact::cgroup_limit_bytes, limits.cgroup_limit_bytes},
      {Fact::cgroup_used_bytes, limits.cgroup_used_bytes}};
  for (const auto& [fact, value] : known) facts.set(fact, value);
}

void note_implicit(const ledger::DeviceView& device, ledger::IncidentFacts& facts) {
  const ledger::ImplicitBytes& implicit = device.implicit;
  facts.set(Fact::context_bytes, implicit.contexts());
  facts.set(Fact::module_bytes, implicit.modules);
  facts.set(Fact::local_memory_bytes, implicit.local_memory);
  facts.set(Fact::heap_bytes, implicit.heap);
  facts.set(Fact::stream_bytes, implicit.streams);
  facts.set(Fact::graph_bytes, implicit.graphs);
}

// Notes how much of the device's code, streams and executable graphs calls of known libraries took.
void note_libraries(const ledger::Reader& live, rescue::Incident& incident) {
  const LibrariesImplicit all = live_implicit_of_libraries(live);
  const auto here = all.find(incident.request.device.value);
  if (here == all.end()) return;
  incident.facts.set(Fact::library_module_bytes, here->second.modules);
  incident.facts.set(Fact::library_stream_bytes, here->second.streams);
  incident.facts.set(Fact::library_graph_bytes, here->second.graphs);
}

// Notes how much memory PyTorch's segments have, and how the free part is cut up if blocks are
// recorded.
void note_segments_of_pytorch(const ledger::Reader& live, rescue::Incident& incident) {
  const auto reserved = incident.facts.fact(Fact::pytorch_reserved_bytes);
  if (!reserved) return;
  incident.facts.set(
      Fact::pytorch_reserved_bytes,
      reserved_by_pytorch(live, incident.request.device, *reserved,
                          incident.facts.fact(Fact::pytorch_allocated_bytes).value_or(0)));
  const auto free = free_blocks_of_pytorch(live, incident.request.device);
  if (!free) return;
  incident.facts.set(Fact::pytorch_hole_count, free->hole_count);
  incident.facts.set(Fact::pytorch_hole_bytes, free->hole_bytes);
  incident.facts.set(Fact::pytorch_largest_free_bytes, free->largest_bytes);
}

// Notes another process that uses the request's device, with what /proc tells of it. Returns the
// process's state.
ledger::RunState note_process(ledger::Incidents& rows, OtherProcesses& processes,
                              ledger::SeenBy seen_by, std::uint32_t pid, std::uint64_t bytes,
                              rescue::Incident& incident) {
  const ProcessFacts facts = processes.facts_of(pid);
  const ledger::OtherProcess process{.pid = pid,
                                     .parent = facts.parent,
                                     .bytes = bytes,
                                     .seen_by = seen_by,
                                     .run_state = facts.run_state,
                                     .is_of_another_user = facts.is_of_another_user,
                                     .start_realtime_ns = facts.start_realtime_ns,
                                     .program = facts.program,
                                     .parent_program = facts.parent_program,
                                     .user = facts.user,
                                     .job = facts.job,
                                     .container = facts.container,
                                     .pod = facts.pod,
                                     .unit = facts.unit};
  incident.others.add(rows.add_process(incident.id, process));
  return facts.run_state;
}

// Notes processes that have the device's file open, and that are not among `listed`. They may be
// those that hold memory which no process on NVML's list has, or which a zombie had.
// `file_number`: number in the name of the device's file.
void note_processes_with_file(ledger::Incidents& rows, OtherProcesses& processes,
                              std::uint32_t file_number, const std::vector<std::uint32_t>& listed,
                              rescue::Incident& incident) {
  constexpr std::size_t most = 64;
  std::vector<std::uint32_t> found;
  processes.each_with_device_file(file_number, [&](std::uint32_t pid) {
    if (std::ranges::find(listed, pid) == listed.end()) found.push_back(pid);
    return found.size() < most;
  });
  for (const std::uint32_t pid : found)
    note_process(rows, processes, ledger::SeenBy::device_file, pid, ledger::unknown_value,
                 incident);
}

bool is_much_unexplained(const rescue::Incident& incident) {
  const auto account = account_of(incident.request.device, incident.facts);
  return account && account->unexplained() > hidden_by_a_context;
}

// Notes the bytes of other processes, which must be known. Bytes that were there before the first
// context are no longer counted with it.
void note_bytes_of_others(ledger::Writer& ledger, const ledger::DeviceView& device,
                          const MemoryOfOthers& found, ledger::IncidentFacts& facts) {
  if (const auto account = account_of(device.ordinal, facts); account && found.own_bytes) {
    const std::uint64_t opened = std::min(*found.bytes, account->live(Kind::imported));
    std::uint64_t recorded = account->own() + device.implicit.beside_first_context();
    for (const Holder holder :
         {Holder::slab_waste, Holder::rounding_waste, Holder::mempool_idle, Holder::pool})
      recorded += account->of(holder);
    const std::uint64_t twice =
        counted_with_context(device.implicit, {.unexplained = account->unexplained(),
                                               .others = *found.bytes - opened,
                                               .own = *found.own_bytes,
                                               .recorded = recorded});
    subtract_from_context(ledger, device.ordinal, device.implicit, twice);
    facts.set(Fact::context_bytes, device.implicit.contexts() - twice);
  }
  facts.set(Fact::other_processes_bytes, *found.bytes);
}

void note_other_processes(ledger::Writer& ledger, const ledger::DeviceView& device,
                          rescue::Incident& incident) {
  ledger::Incidents& rows = ledger.incidents;
  OtherProcesses processes;
  std::vector<std::uint32_t> listed;
  bool has_zombie = false;
  const MemoryOfOthers found =
      memory_of_others(device, [&](std::uint32_t pid, std::uint64_t bytes) {
        listed.push_back(pid);
        if (note_process(rows, processes, ledger::SeenBy::nvml, pid, bytes, incident) ==
            ledger::RunState::zombie)
          has_zombie = true;
      });
  if (found.bytes) note_bytes_of_others(ledger, device, found, incident.facts);
  if (found.unmatched != 0) incident.facts.set(Fact::unmatched_processes, found.unmatched);
  if (found.file_number && (has_zombie || is_much_unexplained(incident)))
    note_processes_with_file(rows, processes, *found.file_number, listed, incident);
}

// The environment may have changed since the process began, when MPS read the variable. So the
// recorded value counts.
void note_mps_limit(const ledger::Reader& live, rescue::Incident& incident) {
  each_row(live, ledger::RegionId::environment, &ledger::Reader::environment,
           [&](const ledger::NamedValueView& variable) {
             if (variable.name != "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") return;
             if (const auto bytes = mps_limit_of(variable.value, incident.request.device))
               incident.facts.set(Fact::mps_limit_bytes, *bytes);
           });
}

std::span<const char, 16> uuid_of(const ledger::DeviceView& device) {
  return std::span<const char, 16>(reinterpret_cast<const char*>(device.uuid), 16);
}

void note_whole_device(const ledger::DeviceView& device, ledger::IncidentFacts& facts) {
  const auto total = facts.fact(Fact::total_bytes);
  if (!is_slice(device) || !total || facts.bytes <= *total) return;
  if (const auto memory = read_nvml_memory_of_whole(uuid_of(device)))
    facts.set(Fact::whole_device_bytes, memory->total_bytes);
}

// Without a context CUDA does not tell the device's free bytes, and a full device may be the reason
// why there is no context.
void note_memory_without_context(const ledger::DeviceView& device, ledger::IncidentFacts& facts) {
  if (facts.asked != ledger::Asked::context || facts.fact(Fact::free_bytes) ||
      facts.result != out_of_memory)
    return;
  if (const auto memory = read_nvml_memory(uuid_of(device)))
    facts.set(Fact::nvml_free_bytes, memory->free_bytes);
}

// A limit on a device's memory for a cgroup came with this version of CUDA. Older drivers are not
// asked, so that NVML is not loaded in vain.
void note_cgroup_limit(const ledger::Reader& live, const ledger::DeviceView& device,
                       ledger::IncidentFacts& facts) {
  constexpr int first_version = 13040;
  if (live.process().driver_version < first_version || facts.result != out_of_memory ||
      is_slice(device))
    return;
  const UnifiedCgroup own = own_unified_cgroup();
  if (own.path[0] == '\0') return;
  if (const auto limit = read_nvml_cgroup_limit(uuid_of(device), own.path)) {
    facts.set(Fact::cgroup_device_limit_bytes, limit->limit_bytes);
    facts.set(Fact::cgroup_device_used_bytes, limit->used_bytes);
  }
}

// Another process has the only context that the device allows, or more of the device is used than
// this process knows of.
bool may_be_of_others(const ledger::DeviceView& device, const rescue::Incident& incident) {
  constexpr std::uint64_t exclusive_process = 3;  // CUcomputemode
  const auto account = account_of(incident.request.device, incident.facts);
  // This process's own context is explained where its size is known.
  const std::uint64_t first = device.implicit.used_after_first_context;
  const bool is_known = first != 0 && first <= ledger::ImplicitBytes::largest_context;
  const std::int64_t hidden =
      is_known ? static_cast<std::int64_t>(tracking::Neighbours::most_hidden_bytes)
               : hidden_by_a_context;
  return (account && account->unexplained() > hidden) ||
         incident.facts.fact(Fact::compute_mode) == exclusive_process;
}

}  // namespace

void add_incident_facts(ledger::Writer& ledger, const ledger::Reader& live,
                        rescue::Incident& incident) {
  const auto device = device_row(live, incident.request.device);
  note_host(incident.facts);
  note_slabs(ledger.incidents, live, incident);
  if (device) note_implicit(*device, incident.facts);
  const auto sums = std::make_unique<ledger::GroupSums>();  // too large for a small stack
  note_growth(live_groups(live, ledger.time.now_ns(), *sums), incident.holdings);
  note_libraries(live, incident);
  note_segments_of_pytorch(live, incident);
  note_mps_limit(live, incident);
  if (!device) return;
  note_whole_device(*device, incident.facts);
  note_memory_without_context(*device, incident.facts);
  note_cgroup_limit(live, *device, incident.facts);
  if (may_be_of_others(*device, incident)) note_other_processes(ledger, *device, incident);
}

}  // namespace cuwarden::shim
