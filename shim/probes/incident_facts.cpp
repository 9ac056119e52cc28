#include "shim/probes/incident_facts.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "reporters/each_row.hpp"
#include "reporters/leak_groups.hpp"
#include "reporters/slabs.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "shim/probes/host_limits.hpp"
#include "shim/probes/mps_limit.hpp"
#include "shim/probes/nvml_memory.hpp"
#include "shim/probes/other_processes.hpp"

namespace cuwarden::shim {
namespace {

using ledger::Fact;

constexpr std::size_t most_lockers = 4;

// The stacks whose pieces lock most.
void note_lockers(ledger::Writer& ledger, const ledger::Reader& reader, IncidentId incident,
                  const Fragmentation& found) {
  std::vector<std::pair<std::uint64_t, GroupId>> lockers;
  for (const auto& [group, holder] : found.holders)
    if (holder.locked_bytes > 0) lockers.push_back({holder.locked_bytes, {group}});
  std::ranges::sort(lockers, std::greater{}, [](const auto& locker) { return locker.first; });
  lockers.resize(std::min(lockers.size(), most_lockers));
  for (const auto& [locked, id] : lockers) {
    if (const auto group = reader.group(id.value))
      ledger.incidents.add_slab_share(incident, {id, group->live_count, group->live_bytes, locked});
  }
}

void note_slabs(ledger::Writer& ledger, const ledger::Reader& reader, const IncidentCase& given) {
  if (given.device == no_device) return;
  const auto all = find_fragmentation(reader);
  const auto found = all.find(given.device.value);
  const Fragmentation none;
  const Fragmentation& here = found == all.end() ? none : found->second;
  ledger.incidents.set_fact(given.incident.id, Fact::slab_locked_bytes, here.locked_bytes);
  ledger.incidents.set_fact(given.incident.id, Fact::rounding_bytes, here.rounding_bytes);
  ledger.incidents.set_fact(given.incident.id, Fact::slab_count, here.slabs.size());
  for (const auto& [class_bytes, row] : here.classes)
    ledger.incidents.add_slab_class(given.incident.id,
                                    {class_bytes, row.slab_count, row.live_count, row.live_bytes});
  std::vector<ledger::SlabRow> slabs;
  slabs.reserve(here.slabs.size());
  for (const Slab& slab : here.slabs)
    slabs.push_back({{slab.address}, slab.live_count, slab.live_bytes});
  ledger.incidents.add_slabs(given.incident.id, slabs);
  note_lockers(ledger, reader, given.incident.id, here);
}

void note_growth(ledger::Writer& ledger, const ledger::Reader& reader, IncidentId incident) {
  const auto sums = std::make_unique<ledger::GroupSums>();
  const std::vector<LeakGroup> groups = live_groups(reader, ledger.time.now_ns(), *sums);
  const std::uint64_t rows = reader.rows(ledger::RegionId::incident_holders);
  for (std::uint64_t row = 1; row < rows; ++row) {
    const auto holder = reader.incident_holder(row);
    if (!holder || holder->incident != incident) continue;
    for (const LeakGroup& group : groups) {
      if (group.group.id != holder->group) continue;
      if (const auto rate = group.growth.bytes_per_minute())
        ledger.incidents.set_growth(row, *rate);
    }
  }
}

void note_host(ledger::Writer& ledger, IncidentId incident) {
  static_assert(HostLimits::unknown == ledger::unknown_bytes &&
                HostLimits::unlimited == ledger::no_limit);
  const HostLimits limits = read_host_limits();
  const std::pair<Fact, std::uint64_t> facts[] = {
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
  for (const auto& [fact, value] : facts) ledger.incidents.set_fact(incident, fact, value);
}

void note_implicit(ledger::Writer& ledger, const ledger::Reader& reader,
                   const IncidentCase& given) {
  const auto device = device_row(reader, given.device);
  if (!device) return;
  const ledger::ImplicitBytes& implicit = device->implicit;
  const std::pair<Fact, std::uint64_t> facts[] = {{Fact::context_bytes, implicit.contexts()},
                                                  {Fact::module_bytes, implicit.modules},
                                                  {Fact::local_memory_bytes, implicit.local_memory},
                                                  {Fact::heap_bytes, implicit.heap},
                                                  {Fact::stream_bytes, implicit.streams}};
  for (const auto& [fact, value] : facts) ledger.incidents.set_fact(given.incident.id, fact, value);
}

void note_other_processes(ledger::Writer& ledger, const ledger::Reader& reader,
                          const IncidentCase& given) {
  const auto device = device_row(reader, given.device);
  if (!device) return;
  const auto bytes = bytes_of_others(*device, [&](std::uint32_t pid, std::uint64_t used) {
    ledger.incidents.add_process(given.incident.id, pid, used);
  });
  if (bytes) ledger.incidents.set_fact(given.incident.id, Fact::other_processes_bytes, *bytes);
}

// The program may have changed its environment since; MPS read it when the process began.
void note_mps_limit(ledger::Writer& ledger, const ledger::Reader& reader,
                    const IncidentCase& given) {
  each_row(reader, ledger::RegionId::environment, &ledger::Reader::environment,
           [&](const ledger::NamedValueView& variable) {
             if (variable.name != "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") return;
             if (const auto bytes = mps_limit_of(variable.value, given.device))
               ledger.incidents.set_fact(given.incident.id, Fact::mps_limit_bytes, *bytes);
           });
}

void note_whole_device(ledger::Writer& ledger, const ledger::Reader& reader,
                       const IncidentCase& given) {
  const auto total = given.incident.fact(Fact::total_bytes);
  if (given.slice.empty() || !total || given.incident.bytes <= *total) return;
  const auto device = device_row(reader, given.device);
  if (!device) return;
  const std::span<const char, 16> uuid(reinterpret_cast<const char*>(device->uuid), 16);
  if (const auto memory = read_nvml_memory_of_whole(uuid))
    ledger.incidents.set_fact(given.incident.id, Fact::whole_device_bytes, memory->total_bytes);
}

// Without a context CUDA does not say how full the device is, and that may be why there is none.
void note_memory_without_context(ledger::Writer& ledger, const ledger::Reader& reader,
                                 const IncidentCase& given) {
  if (given.incident.asked != ledger::Asked::context || given.incident.fact(Fact::free_bytes) ||
      given.incident.result != out_of_memory)
    return;
  const auto device = device_row(reader, given.device);
  if (!device) return;
  const std::span<const char, 16> uuid(reinterpret_cast<const char*>(device->uuid), 16);
  if (const auto memory = read_nvml_memory(uuid))
    ledger.incidents.set_fact(given.incident.id, Fact::nvml_free_bytes, memory->free_bytes);
}

// Somebody has the one context that the device takes.
bool is_taken_by_another(const IncidentCase& given) {
  constexpr std::uint64_t exclusive_process = 3;  // CUcomputemode
  return given.incident.fact(Fact::compute_mode) == exclusive_process;
}

}  // namespace

void add_incident_facts(ledger::Writer& ledger, const ledger::Reader& reader,
                        const IncidentCase& given) {
  const IncidentId id = given.incident.id;
  note_host(ledger, id);
  note_slabs(ledger, reader, given);
  note_implicit(ledger, reader, given);
  note_growth(ledger, reader, id);
  note_mps_limit(ledger, reader, given);
  note_whole_device(ledger, reader, given);
  note_memory_without_context(ledger, reader, given);
  const auto incident = reader.incident(id.value);
  StackModules modules(reader);
  const auto now = incident ? case_of(reader, *incident, modules) : std::nullopt;
  const auto account = now ? account_of(*now) : std::nullopt;
  if ((account && account->unexplained > hidden_by_a_context) || is_taken_by_another(given))
    note_other_processes(ledger, reader, given);
}

}  // namespace cuwarden::shim
