#include "reporters/exports/page/page_slabs.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "reporters/exports/page/page_json.hpp"

namespace cuwarden {
namespace {

constexpr std::uint64_t usual_page_bytes = std::uint64_t{2} << 20;

// A slab of any of the three tables.
struct Slab {
  std::uint64_t address = 0;
  model::Figure live, live_bytes{}, class_bytes{}, slots{};
  std::vector<model::Id> stacks{};  // stacks with most live pieces in the slab, most first
};
// A stack with pieces in slabs.
struct Holder {
  model::MaybeId stack;
  model::Figure count, bytes, locked_bytes;
};
// The slabs of a device at one moment.
struct Map {
  const char* moment;  // "incident", "worst" or "end"
  model::MaybeId incident{};
  model::MaybeId device;
  model::Figure time_ns{}, slab_count, locked_bytes;
  std::uint64_t page_bytes = usual_page_bytes;
  std::vector<Slab> slabs{};
  std::vector<Holder> holders{};
};

std::uint64_t address_of(std::string_view text) {
  std::uint64_t address = 0;
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::from_chars(text.data(), text.data() + text.size(), address, 16);
  return address;
}

// Adds the stacks of each slab. `sets` has each list of stacks that occurs, once, and `set` has the
// number of each slab's list. Slabs that lie side by side mostly have the same stacks.
void add_stacks(const std::vector<Slab>& slabs, StacksOfReport& stacks, PageJson& object) {
  std::map<std::vector<std::uint32_t>, std::size_t> numbers{{{}, 0}};
  PageJson sets("[]");
  sets.add("[]");
  PageJson column("[]");
  for (const Slab& slab : slabs) {
    // Stacks of equal frames are one stack of the page. Stack 0 has no frames.
    std::vector<std::uint32_t> list;
    for (const model::Id id : slab.stacks)
      if (const std::uint32_t stack = stacks.number_of(id);
          stack != 0 && std::ranges::find(list, stack) == list.end())
        list.push_back(stack);
    const auto [found, is_new] = numbers.try_emplace(list, numbers.size());
    if (is_new) sets.add(page_column(list, [](std::uint32_t stack) { return stack; }));
    column.add(page_value(found->second));
  }
  object.add("sets", sets.text());
  // Without any list, the column says nothing.
  object.add("set", numbers.size() == 1 ? "[]" : column.text());
}

std::string json_of(Map map, StacksOfReport& stacks) {
  std::ranges::sort(map.slabs, {}, &Slab::address);
  PageJson object("{}");
  object.set("moment", std::string(map.moment))
      .set("incident", map.incident)
      .set("device", map.device)
      .set("time", map.time_ns ? model::Figure(*map.time_ns / 1000) : map.time_ns)
      .set("count", map.slab_count)
      .set("locked", map.locked_bytes)
      .set("page_bytes", map.page_bytes);
  // Addresses as pages since the slab before: most slabs lie side by side. The sum of all is the
  // number of a page, which a number of JavaScript holds exactly.
  std::uint64_t last = 0;
  const std::uint64_t page = std::max<std::uint64_t>(map.page_bytes, 1);
  object.add("step", page_column(map.slabs, [&](const Slab& slab) {
               return slab.address / page - std::exchange(last, slab.address / page);
             }));
  object.add("live", page_column(map.slabs, [](const Slab& slab) { return slab.live; }));
  object.add("bytes", page_column(map.slabs, [](const Slab& slab) { return slab.live_bytes; }));
  object.add("piece", page_column(map.slabs, [](const Slab& slab) { return slab.class_bytes; }));
  object.add("slots", page_column(map.slabs, [](const Slab& slab) { return slab.slots; }));
  add_stacks(map.slabs, stacks, object);
  std::ranges::stable_sort(map.holders, std::greater(),
                           [](const Holder& holder) { return holder.locked_bytes.value_or(0); });
  PageJson holders("{}");
  holders.add("stack", page_column(map.holders, [&](const Holder& holder) {
                return stacks.number_of(holder.stack);
              }));
  holders.add("count", page_column(map.holders, [](const auto& holder) { return holder.count; }));
  holders.add("bytes", page_column(map.holders, [](const auto& holder) { return holder.bytes; }));
  holders.add("locked",
              page_column(map.holders, [](const auto& holder) { return holder.locked_bytes; }));
  return object.add("holders", holders.text()).text();
}

void add_incident_maps(const IndexedReport& report, std::vector<Map>& maps) {
  for (const model::IncidentFragmentation& row : report->incident_fragmentation) {
    Map map{.moment = "incident",
            .incident = row.incident,
            .device = row.device,
            .slab_count = row.slab_count,
            .locked_bytes = row.slab_locked_bytes};
    for (const model::Incident& incident : report->incidents)
      if (incident.id == row.incident) map.time_ns = incident.time_ns;
    for (const model::IncidentSlab& slab : report->incident_slab_map)
      if (slab.incident == row.incident)
        map.slabs.push_back({.address = address_of(slab.address),
                             .live = slab.live,
                             .live_bytes = slab.live_bytes,
                             .stacks = slab.stacks});
    for (const model::IncidentHolder& holder : report->incident_holders)
      if (holder.incident == row.incident && holder.slab_locked_bytes.value_or(0) != 0)
        map.holders.push_back({holder.stack, holder.count, holder.bytes, holder.slab_locked_bytes});
    maps.push_back(std::move(map));
  }
}

void add_worst_maps(const IndexedReport& report, std::vector<Map>& maps) {
  for (const model::WorstFragmentation& row : report->worst_fragmentation) {
    Map map{.moment = "worst",
            .device = row.device,
            .time_ns = row.time_ns,
            .slab_count = row.slab_count,
            .locked_bytes = row.slab_locked_bytes};
    for (const model::WorstSlab& slab : report->worst_slab_map)
      if (slab.device == row.device)
        map.slabs.push_back({.address = address_of(slab.address),
                             .live = slab.live,
                             .live_bytes = slab.live_bytes});
    for (const model::WorstSlabHolder& holder : report->worst_slab_holders)
      if (holder.device == row.device)
        map.holders.push_back({holder.stack, holder.count, holder.bytes, holder.locked_bytes});
    maps.push_back(std::move(map));
  }
}

void add_maps_of_the_end(const IndexedReport& report, std::vector<Map>& maps) {
  for (const model::Fragmentation& row : report->fragmentation) {
    Map map{.moment = "end",
            .device = row.device,
            .time_ns = report->process.end_ns,
            .slab_count = row.slab_count,
            .locked_bytes = row.slab_locked_bytes};
    map.page_bytes = row.page_bytes.value_or(usual_page_bytes);
    for (const model::Slab& slab : report->slab_map)
      if (slab.device == row.device)
        map.slabs.push_back({.address = address_of(slab.address),
                             .live = slab.live,
                             .class_bytes = slab.class_bytes,
                             .slots = slab.slots,
                             .stacks = slab.stacks});
    for (const model::SlabHolder& holder : report->slab_holders)
      if (holder.device == row.device)
        map.holders.push_back({holder.stack, holder.count, holder.bytes, holder.locked_bytes});
    maps.push_back(std::move(map));
  }
}

}  // namespace

std::string page_slabs(const IndexedReport& report, StacksOfReport& stacks) {
  std::vector<Map> maps;
  add_incident_maps(report, maps);
  add_worst_maps(report, maps);
  add_maps_of_the_end(report, maps);
  std::erase_if(maps, [](const Map& map) { return map.slabs.empty(); });
  PageJson list("[]");
  for (Map& map : maps) list.add(json_of(std::move(map), stacks));
  return list.text();
}

}  // namespace cuwarden
