#include "reporters/incident_fragmentation.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "reporters/each_row.hpp"
#include "reporters/quantities.hpp"
#include "reporters/slab_rows.hpp"

namespace cuwarden {
namespace {

using ledger::Asked;
using ledger::Fact;
using ledger::RegionId;

// Slabs with a row, by incident; those of incidents that the report lists.
using ListedSlabs = std::map<std::uint32_t, std::uint64_t>;

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

// Less than what was asked for in vain.
std::optional<std::uint64_t> largest_request_at(const ledger::IncidentView& incident) {
  constexpr std::uint64_t page = ledger::slab_page_bytes;
  const auto free = incident.fact(Fact::free_bytes);
  if (!free || incident.asked != Asked::memory || incident.bytes == 0) return std::nullopt;
  const std::uint64_t idle = incident.fact(Fact::memory_pool_idle_bytes).value_or(0);
  return std::min(largest_request(*free, idle, page), (incident.bytes - 1) / page * page);
}

void write_sums(const std::vector<IncidentCase>& incidents, const ListedSlabs& listed,
                JsonStream& json) {
  json.begin_table("incident_fragmentation");
  for (const IncidentCase& given : incidents) {
    const ledger::IncidentView& incident = given.incident;
    if (given.device.value < 0 || !incident.fact(Fact::slab_locked_bytes)) continue;
    json.begin_row();
    json.field("incident", incident.id.value);
    json.field("device", static_cast<std::uint32_t>(given.device.value));
    json.field("slab_count", incident.fact(Fact::slab_count));
    json.field("slabs_listed", listed.at(incident.id.value));
    json.field("slab_locked_bytes", incident.fact(Fact::slab_locked_bytes));
    json.field("rounding_bytes", incident.fact(Fact::rounding_bytes));
    json.field("mempool_idle_bytes", incident.fact(Fact::memory_pool_idle_bytes));
    json.field("largest_request_bytes", largest_request_at(incident));
    json.end_row();
  }
  json.end_table();
}

}  // namespace

void write_incident_fragmentation(const ledger::Reader& reader,
                                  const std::vector<IncidentCase>& incidents, JsonStream& json) {
  const ListedSlabs listed = listed_slabs(reader, incidents);
  write_sums(incidents, listed, json);

  json.begin_table("incident_slab_classes");
  each_row(reader, RegionId::incident_classes, &ledger::Reader::incident_class,
           [&](const ledger::IncidentClassView& row) {
             if (!listed.contains(row.incident.value)) return;
             json.begin_row();
             json.field("incident", row.incident.value);
             write_class(row.class_bytes, {row.slab_count, row.live_count, row.live_bytes}, json);
             json.end_row();
           });
  json.end_table();

  json.begin_table("incident_slab_map");
  each_row(reader, RegionId::incident_slabs, &ledger::Reader::incident_slab,
           [&](const ledger::IncidentSlabView& slab) {
             if (!listed.contains(slab.incident.value)) return;
             json.begin_row();
             json.field("incident", slab.incident.value);
             json.field("address", address_text(slab.address.value));
             json.field("live", slab.live_count);
             json.field("live_bytes", slab.live_bytes);
             json.end_row();
           });
  json.end_table();
}

}  // namespace cuwarden
