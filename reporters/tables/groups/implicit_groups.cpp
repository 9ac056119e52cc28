#include "reporters/tables/groups/implicit_groups.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "reporters/model/device_id.hpp"
#include "reporters/model/each_row.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

// Returns the item of the table `accounts` to which implicit memory of this kind belongs.
std::string item_of(Kind kind) {
  switch (kind) {
    case Kind::stream:
      return "streams";
    case Kind::module:
      return "modules";
    case Kind::graph_exec:
      return "graphs";
    default:
      return std::string(kind_name(kind));
  }
}

// Returns the group of the device's oldest live context; null if no context of the device is live.
LeakGroup* oldest_contexts(std::vector<LeakGroup>& groups, DeviceOrdinal device) {
  LeakGroup* oldest = nullptr;
  const auto since = [](const LeakGroup& group) {
    return group.first_ns.value_or(group.group.first_ns);
  };
  for (LeakGroup& group : groups)
    if (group.group.kind == Kind::context && group.group.device == device &&
        !group.released_by_context && group.count != 0 &&
        (oldest == nullptr || since(group) < since(*oldest)))
      oldest = &group;
  return oldest;
}

// Adds to each device's oldest context what the device's contexts take beyond the recorded bytes of
// all contexts.
void add_first_contexts(const ContextBytes& of_devices, std::vector<LeakGroup>& groups) {
  for (const auto& [device, bytes] : of_devices) {
    std::uint64_t recorded = 0;
    for (const LeakGroup& group : groups)
      if (group.group.kind == Kind::context && group.group.device.value == device &&
          !group.released_by_context)
        recorded += group.bytes;
    LeakGroup* const oldest = oldest_contexts(groups, DeviceOrdinal{device});
    if (oldest != nullptr) oldest->bytes += bytes - std::min(bytes, recorded);
  }
  sort_groups(groups);
}

}  // namespace

std::vector<LeakGroup> implicit_groups(const ledger::Reader& reader, const ContextBytes& contexts,
                                       std::vector<LeakGroup>& leaks) {
  add_first_contexts(contexts, leaks);
  std::vector<LeakGroup> result;
  std::set<std::uint32_t> live;
  for (const LeakGroup& leak : leaks) {
    if (!is_implicit(leak.group.kind) || leak.released_by_context) continue;
    result.push_back(leak);
    live.insert(leak.group.id.value);
  }
  each_row(reader, RegionId::groups, &ledger::Reader::group, [&](const auto& group) {
    if (!is_implicit(group.kind) || group.allocations == 0 || live.contains(group.id.value)) return;
    LeakGroup ended;
    ended.group = group;
    result.push_back(ended);
  });
  std::erase_if(leaks, [](const LeakGroup& leak) {
    return is_implicit(leak.group.kind) &&
           (leak.released_by_context || leak.is_code || is_for_kernels(leak.group.kind) ||
            !leak.growth.growing());
  });
  return result;
}

void put_implicit_groups(const ledger::Reader& reader, const std::vector<LeakGroup>& groups,
                         const CallFrames& frames, Put<model::ImplicitGroup> put) {
  for (const LeakGroup& group : groups) {
    const ledger::GroupView& made = group.group;
    model::ImplicitGroup row;
    row.device = device_id(made.device);
    row.item = item_of(made.kind);
    const auto hook = reader.hook(made.api.value);
    if (hook) row.api = model::text_or_null(hook->name);
    row.stack = frames.known_stack(made.stack);
    row.count = group.count;
    row.bytes = group.bytes;
    row.uncertain = group.is_uncertain || group.is_shared;
    row.shared = group.is_shared;
    row.released_count = made.frees + made.released_count;
    row.first_ns = made.first_ns;
    row.last_ns = made.last_ns;
    if (group.count != 0) row.growth = group.growth.name();
    row.growth_bytes_per_minute = group.growth.bytes_per_minute();
    put(row);
  }
}

}  // namespace cuwarden
