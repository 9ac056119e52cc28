#include "reporters/tables/incident_fragmentation.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "reporters/model/each_row.hpp"
#include "reporters/tables/fragmentation_tables.hpp"
#include "reporters/tables/memory_tables.hpp"
#include "reporters/tables/slabs.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

using ledger::Asked;
using ledger::Fact;
using ledger::RegionId;

// For each incident in the report, the number of slabs that have a row.
using ListedSlabs = std::map<std::uint32_t, std::uint64_t>;

std::set<std::uint32_t> ids_of(const std::vector<IncidentCase>& incidents) {
  std::set<std::uint32_t> ids;
  for (const IncidentCase& given : incidents) ids.insert(given.incident.id.value);
  return ids;
}

ListedSlabs listed_slabs(const ledger::Reader& reader, const std::vector<IncidentCase>& incidents) {
  ListedSlabs listed;
  for (const IncidentCase& given : incidents) listed[given.incident.id.value] = 0;
  each_row(reader, RegionId::incident_slabs, &ledger::Reader::incident_slab,
           [&](const ledger::IncidentSlabView& slab) {
             if (const auto found = listed.find(slab.incident.value); found != listed.end())
               ++found->second;
           });
  return listed;
}

// Returns the largest request that could have been served. It is smaller than the one that was
// refused.
std::optional<std::uint64_t> largest_request_at(const ledger::IncidentView& incident) {
  constexpr std::uint64_t page = ledger::slab_page_bytes;
  const auto free = incident.fact(Fact::free_bytes);
  if (!free || incident.asked != Asked::memory || incident.bytes == 0) return std::nullopt;
  const std::uint64_t idle = incident.fact(Fact::memory_pool_idle_bytes).value_or(0);
  return std::min(largest_request(*free, idle, page), (incident.bytes - 1) / page * page);
}

}  // namespace

void put_incident_fragmentation(const ledger::Reader& reader,
                                const std::vector<IncidentCase>& incidents,
                                Put<model::IncidentFragmentation> put) {
  const ListedSlabs listed = listed_slabs(reader, incidents);
  for (const IncidentCase& given : incidents) {
    const ledger::IncidentView& incident = given.incident;
    const auto device = device_id(given.device);
    if (!device || !incident.fact(Fact::slab_locked_bytes)) continue;
    put({.incident = incident.id.value,
         .device = *device,
         .slab_count = incident.fact(Fact::slab_count),
         .slabs_listed = listed.at(incident.id.value),
         .slab_locked_bytes = incident.fact(Fact::slab_locked_bytes),
         .rounding_bytes = incident.fact(Fact::rounding_bytes),
         .mempool_idle_bytes = incident.fact(Fact::memory_pool_idle_bytes),
         .largest_request_bytes = largest_request_at(incident)});
  }
}

void put_incident_slab_classes(const ledger::Reader& reader,
                               const std::vector<IncidentCase>& incidents,
                               Put<model::IncidentSlabClass> put) {
  const auto listed = ids_of(incidents);
  each_row(reader, RegionId::incident_classes, &ledger::Reader::incident_class,
           [&](const ledger::IncidentClassView& row) {
             if (listed.contains(row.incident.value))
               put({.incident = row.incident.value,
                    .class_bytes = row.class_bytes,
                    .slab_count = row.slab_count,
                    .live_count = row.live_count,
                    .live_bytes = row.live_bytes});
           });
}

void put_incident_slab_map(const ledger::Reader& reader, const std::vector<IncidentCase>& incidents,
                           const CallFrames& frames, Put<model::IncidentSlab> put) {
  const auto listed = ids_of(incidents);
  StacksOfGroups stacks(reader, frames);
  each_row(reader, RegionId::incident_slabs, &ledger::Reader::incident_slab,
           [&](const ledger::IncidentSlabView& slab) {
             if (listed.contains(slab.incident.value))
               put({.incident = slab.incident.value,
                    .address = address_text(slab.address.value),
                    .live = slab.live_count,
                    .live_bytes = slab.live_bytes,
                    .stacks = stacks.of(slab.groups)});
           });
}

}  // namespace cuwarden
