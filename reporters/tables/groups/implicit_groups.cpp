#include "reporters/tables/groups/implicit_groups.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "reporters/labels/users_frame.hpp"
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

// Bytes that objects of a group had which have ended by themselves, not with their context.
std::uint64_t ended_bytes(const ledger::GroupView& group) {
  const std::uint64_t left = group.live_bytes + group.released_bytes;
  return group.allocated_bytes - std::min(group.allocated_bytes, left);
}

// True for a group of green contexts. Ends of other contexts give all of their memory back.
bool makes_green_contexts(const ledger::Reader& reader, const ledger::GroupView& group) {
  const auto hook = reader.hook(group.api.value);
  return group.kind == Kind::context && hook && hook->name.find("GreenCtx") != hook->name.npos;
}

// Returns the bytes that the driver keeps of the device's contexts which have ended: green ones.
// `recorded`: bytes in the records of its live contexts.
std::uint64_t kept_of_contexts(const ledger::Reader& reader, DeviceOrdinal ordinal,
                               std::uint64_t recorded) {
  std::uint64_t kept = 0, ended = 0;
  each_row(reader, RegionId::devices, &ledger::Reader::device, [&](const auto& device) {
    const std::uint64_t further = device.implicit.further_contexts;
    if (device.ordinal == ordinal) kept = further - std::min(further, recorded);
  });
  each_row(reader, RegionId::groups, &ledger::Reader::group, [&](const auto& group) {
    if (makes_green_contexts(reader, group) && group.device == ordinal) ended += ended_bytes(group);
  });
  return std::min(kept, ended);
}

// Adds to each device's oldest context what the device's contexts take beyond the recorded bytes of
// all contexts, and beyond what the driver keeps of those that have ended.
void add_first_contexts(const ledger::Reader& reader, const ContextBytes& of_devices,
                        std::vector<LeakGroup>& groups) {
  for (const auto& [device, bytes] : of_devices) {
    std::uint64_t recorded = 0;
    for (const LeakGroup& group : groups)
      if (group.group.kind == Kind::context && group.group.device.value == device &&
          !group.released_by_context)
        recorded += group.bytes;
    recorded += kept_of_contexts(reader, DeviceOrdinal{device}, recorded);
    LeakGroup* const oldest = oldest_contexts(groups, DeviceOrdinal{device});
    if (oldest != nullptr) oldest->bytes += bytes - std::min(bytes, recorded);
  }
  sort_groups(groups);
}

// Divides `kept` bytes among the groups of a kind on a device, by what their ended objects had.
void divide_kept(const ledger::Reader& reader, std::uint64_t kept, Kind kind, DeviceOrdinal device,
                 std::vector<LeakGroup>& groups) {
  std::uint64_t ended = 0;
  const auto belongs = [&](const LeakGroup& group) {
    return group.group.kind == kind && group.group.device == device && !group.released_by_context;
  };
  const auto ended_of = [&](const LeakGroup& group) {
    const bool keeps = kind != Kind::context || makes_green_contexts(reader, group.group);
    return keeps ? ended_bytes(group.group) : 0;
  };
  for (const LeakGroup& group : groups) {
    if (!belongs(group)) continue;
    kept -= std::min(kept, group.bytes);
    ended += ended_of(group);
  }
  for (LeakGroup& group : groups) {
    const std::uint64_t own = ended_of(group);
    if (!belongs(group) || own == 0) continue;
    // Sums of a damaged ledger may be too small.
    const double share = ended <= own ? 1 : static_cast<double>(own) / static_cast<double>(ended);
    group.kept_bytes =
        std::min(kept, static_cast<std::uint64_t>(static_cast<double>(kept) * share));
    kept -= group.kept_bytes;
    ended -= std::min(ended, own);
  }
}

void add_kept_bytes(const ledger::Reader& reader, const ContextBytes& contexts,
                    std::vector<LeakGroup>& groups) {
  for (const auto& [device, bytes] : contexts)
    divide_kept(reader, bytes, Kind::context, DeviceOrdinal{device}, groups);
  each_row(reader, RegionId::devices, &ledger::Reader::device, [&](const auto& device) {
    divide_kept(reader, device.implicit.streams, Kind::stream, device.ordinal, groups);
    divide_kept(reader, device.implicit.modules, Kind::module, device.ordinal, groups);
    divide_kept(reader, device.implicit.graphs, Kind::graph_exec, device.ordinal, groups);
  });
}

}  // namespace

std::vector<LeakGroup> implicit_groups(const ledger::Reader& reader, const ContextBytes& contexts,
                                       std::vector<LeakGroup>& leaks) {
  add_first_contexts(reader, contexts, leaks);
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
  add_kept_bytes(reader, contexts, result);
  std::erase_if(leaks, [](const LeakGroup& leak) {
    return is_implicit(leak.group.kind) &&
           (leak.released_by_context || leak.is_code || is_for_kernels(leak.group.kind) ||
            !leak.judged_growth().growing());
  });
  return result;
}

std::vector<LeakGroup> live_implicit_groups(const ledger::Reader& reader) {
  std::vector<LeakGroup> result;
  each_row(reader, RegionId::groups, &ledger::Reader::group, [&](const auto& group) {
    if (!is_implicit(group.kind) || group.allocations == 0) return;
    LeakGroup& objects = result.emplace_back();
    objects.group = group;
    objects.count = group.live_count;
    objects.bytes = ledger::GroupSums::live_bytes(group);
  });
  add_kept_bytes(reader, {}, result);
  return result;
}

namespace {

// The groups that have parts of a difference, by the number of the difference (Record::difference).
using Sharers = std::map<std::uint16_t, std::vector<const LeakGroup*>>;

Sharers sharers_of(const std::vector<LeakGroup>& groups) {
  Sharers sharers;
  for (const LeakGroup& group : groups)
    for (const std::uint16_t difference : group.differences) sharers[difference].push_back(&group);
  return sharers;
}

// Returns the stacks of the other groups with which the group shares a difference.
std::vector<model::Id> stacks_that_share(const LeakGroup& group, const Sharers& sharers,
                                         const CallFrames& frames) {
  std::set<model::Id> stacks;
  for (const std::uint16_t difference : group.differences)
    for (const LeakGroup* other : sharers.at(difference))
      if (const auto stack = frames.known_stack(other->group.stack);
          stack && other->group.stack != group.group.stack)
        stacks.insert(*stack);
  return {stacks.begin(), stacks.end()};
}

}  // namespace

void put_implicit_groups(const ledger::Reader& reader, const std::vector<LeakGroup>& groups,
                         const CallFrames& frames, Put<model::ImplicitGroup> put) {
  const Sharers sharers = sharers_of(groups);
  for (const LeakGroup& group : groups) {
    const ledger::GroupView& made = group.group;
    model::ImplicitGroup row;
    row.device = device_id(made.device);
    row.item = item_of(made.kind);
    const auto hook = reader.hook(made.api.value);
    if (hook) row.api = model::text_or_null(hook->name);
    row.stack = frames.known_stack(made.stack);
    row.where = users_location(frames.named_frames(row.stack));
    row.count = group.count;
    row.bytes = group.bytes;
    row.uncertain = group.is_uncertain || group.is_shared;
    row.shared = group.is_shared;
    row.shared_with = stacks_that_share(group, sharers, frames);
    row.released_count = made.frees + made.released_count;
    row.kept_bytes = group.kept_bytes;
    row.first_ns = made.first_ns;
    row.last_ns = made.last_ns;
    if (group.count != 0) row.growth = group.judged_growth().name();
    if (group.judged_growth().growing())
      row.growth_bytes_per_minute = group.growth.bytes_per_minute();
    put(row);
  }
}

}  // namespace cuwarden
