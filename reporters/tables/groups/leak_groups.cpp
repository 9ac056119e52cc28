#include "reporters/tables/groups/leak_groups.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "reporters/labels/group_label.hpp"
#include "reporters/labels/users_frame.hpp"
#include "reporters/model/device_id.hpp"
#include "reporters/model/each_row.hpp"
#include "reporters/model/named_steps.hpp"
#include "reporters/tables/groups/step_marks.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

// The groups with live allocations, and those of each group by named step (such as a test). The
// groups lie where the caller takes them from, since a second copy of many would take much memory.
struct LiveGroups {
  std::vector<LeakGroup> groups;  // without LeakGroup::group, which the caller sets
  std::unordered_map<std::uint32_t, std::uint32_t> at;  // id of a group → index in `groups`
  std::unordered_map<std::uint32_t, std::map<std::string, LeakGroup::Sum>> by_named_step;
  // Returns the group with this id; null if it has no live allocation.
  LeakGroup* find(GroupId id) {
    const auto found = at.find(id.value);
    return found == at.end() ? nullptr : &groups[found->second];
  }
};

// Fewest steps by which growth is judged: one in each quarter of them.
constexpr std::uint64_t fewest_steps = 4;

// Returns the moment until which the process could have leaked more: the first failed request after
// which no live allocation was made, otherwise `end_ns`, the process's end. A process that has run
// out of memory may go on for a while, in which its leaks cannot grow. A failed request does not
// count if the process went on for longer than it took to get there, unless it ended by a failure.
// `first_ns` and `newest_ns`: times at which the oldest and the newest live allocation were made.
// All times are in ns since the process's start.
std::uint64_t end_of_growth(const ledger::Reader& reader, std::uint64_t first_ns,
                            std::uint64_t newest_ns, const EndOfRun& run) {
  std::uint64_t end = run.end_ns;
  each_row(reader, RegionId::incidents, &ledger::Reader::incident, [&](const auto& incident) {
    if (incident.failed <= incident.recovered || incident.time_ns < newest_ns) return;
    if (run.is_failure || run.end_ns - std::min(incident.time_ns, run.end_ns) <=
                              incident.time_ns - std::min(first_ns, incident.time_ns))
      end = std::min(end, incident.time_ns);
  });
  return end;
}

template <class Visit>
void each_live_record(const ledger::Reader& reader, RowDone done, const Visit& visit) {
  const std::uint64_t rows = reader.rows(RegionId::records);
  for (std::uint64_t row = 1; row < rows; ++row) {
    done();
    const auto record = reader.record(row);
    if (record && (record->flags & ledger::record_counts_no_bytes) == 0) visit(*record);
  }
}

// Returns the number of groups whose allocations the end of a context released.
std::size_t released_groups(const ledger::Reader& reader) {
  std::size_t count = 0;
  each_row(reader, RegionId::groups, &ledger::Reader::group,
           [&](const auto& group) { count += group.released_count > 0 ? 1 : 0; });
  return count;
}

// Adds a live allocation to its group.
void add(const ledger::RecordView& record, LeakGroup& live) {
  if (!live.first_ns || record.time_ns < *live.first_ns) {
    live.first_ns = record.time_ns;
    live.example = record.address;
  }
  live.last_ns = std::max(live.last_ns.value_or(0), record.time_ns);
  live.is_code = live.is_code || record.space == Space::kernel;
  live.is_uncertain = live.is_uncertain || (record.flags & ledger::record_bytes_uncertain) != 0;
  live.is_shared = live.is_shared || (record.flags & ledger::record_bytes_shared) != 0;
  if (record.difference != 0) live.differences.insert(record.difference);
  ++live.count;
  live.bytes += record.bytes.value;
  LeakGroup::Sum& sum = live.by_reach[static_cast<std::size_t>(record.reach)];
  ++sum.count;
  sum.bytes += record.bytes.value;
  if (record.space == Space::vmm_handle && record.mappings == 0 && record.references > 0)
    live.unmapped_count = live.unmapped_count.value_or(0) + 1;
}

LiveGroups live_by_group(const ledger::Reader& reader, const EndOfRun& run, RowDone done) {
  LiveGroups result;
  each_live_record(reader, done, [&](const ledger::RecordView& record) {
    result.at.try_emplace(record.group.value, static_cast<std::uint32_t>(result.at.size()));
  });
  // A vector that grew later would hold all groups twice meanwhile.
  result.groups.reserve(result.at.size() + released_groups(reader));
  result.groups.resize(result.at.size());
  each_live_record(reader, done, [&](const ledger::RecordView& record) {
    if (LeakGroup* const live = result.find(record.group)) add(record, *live);
  });
  const StepMarks steps(reader);
  std::uint64_t first_ns = UINT64_MAX, newest_ns = 0;
  for (const LeakGroup& live : result.groups) {
    first_ns = std::min(first_ns, live.first_ns.value_or(UINT64_MAX));
    newest_ns = std::max(newest_ns, live.last_ns.value_or(0));
  }
  const std::uint64_t growth_end_ns = end_of_growth(reader, first_ns, newest_ns, run);
  for (const auto& [group, index] : result.at) {
    LeakGroup& live = result.groups[index];
    live.growth.first_ns = live.first_ns.value_or(0);
    live.growth.end_ns = growth_end_ns;
    live.steps_cover = steps.cover(live.last_ns.value_or(0));
    live.by_step.first_ns = steps.at(live.first_ns.value_or(0));
    live.by_step.end_ns = steps.count() + 1;
    live.by_step.has_quarters_only = true;
    if (const auto row = reader.group(group)) {
      live.growth.longest_life_ns = row->longest_life.ns(growth_end_ns);
      live.growth.frees = row->frees;
    }
  }
  each_live_record(reader, done, [&](const ledger::RecordView& record) {
    LeakGroup* const known = result.find(record.group);  // a live ledger may have new groups
    if (known == nullptr) return;
    known->growth.add(record.time_ns, record.bytes.value);
    // A queue that the program leaves behind after its last step is as old as it was in that step.
    const std::uint64_t steps_end_ns = std::min(growth_end_ns, steps.end_ns());
    if (steps.count() >= fewest_steps &&
        record.time_ns < known->growth.survivors_end_ns(steps_end_ns))
      known->by_step.add(steps.at(record.time_ns), record.bytes.value);
    if (!steps.have_names()) return;
    const std::string_view name = steps.name_at(record.time_ns);
    if (name.empty()) return;
    LeakGroup::Sum& sum = result.by_named_step[record.group.value][std::string(name)];
    ++sum.count;
    sum.bytes += record.bytes.value;
  });
  return result;
}

// Returns the named steps as rows of the report, most bytes first.
std::vector<model::NamedStep> named_steps_of(const std::map<std::string, LeakGroup::Sum>& sums) {
  std::vector<model::NamedStep> steps;
  for (const auto& [name, sum] : sums) steps.push_back({name, sum.count, sum.bytes});
  model::sum_up_named_steps(steps);
  return steps;
}

std::vector<LeakGroup> groups_of(const ledger::Reader& reader, const EndOfRun& run, bool is_running,
                                 ledger::GroupSums& sums, RowDone done) {
  LiveGroups all = live_by_group(reader, run, done);
  std::vector<LeakGroup>& result = all.groups;
  const std::uint64_t rows = reader.rows(RegionId::groups);
  for (std::uint64_t row = 1; row < rows; ++row) {
    const auto group = reader.group(row);
    if (!group) continue;
    sums.add(*group);
    LeakGroup* leak = all.find(group->id);
    if (is_running && group->live_count == 0) leak = nullptr;
    if (is_running && group->live_count > 0 && leak == nullptr) leak = &result.emplace_back();
    if (leak != nullptr) {
      leak->group = *group;
      if (group->kind != Kind::vmm)
        leak->unmapped_count.reset();
      else if (leak->first_ns)
        leak->unmapped_count = leak->unmapped_count.value_or(0);
      if (const auto steps = all.by_named_step.find(group->id.value);
          steps != all.by_named_step.end())
        leak->named_steps = named_steps_of(steps->second);
      if (is_running) {
        leak->count = group->live_count;
        leak->bytes = ledger::GroupSums::live_bytes(*group);
      }
    }
    if (group->released_count > 0) {
      LeakGroup& released = result.emplace_back();
      released.group = *group;
      released.released_by_context = true;
      released.count = group->released_count;
      released.bytes = group->released_bytes;
    }
  }
  // Groups without a row of their own stand in damaged ledgers only.
  std::erase_if(result, [](const LeakGroup& leak) { return leak.group.id.value == 0; });
  sort_groups(result);
  return std::move(all.groups);
}

}  // namespace

void sort_groups(std::vector<LeakGroup>& groups) {
  std::ranges::sort(groups, [](const LeakGroup& left, const LeakGroup& right) {
    if (left.bytes != right.bytes) return left.bytes > right.bytes;
    if (left.count != right.count) return left.count > right.count;
    return left.group.id < right.group.id;
  });
}

std::vector<LeakGroup> leak_groups(const ledger::Reader& reader, const EndOfRun& run,
                                   ledger::GroupSums& sums, RowDone done) {
  return groups_of(reader, run, false, sums, done);
}

std::vector<LeakGroup> live_groups(const ledger::Reader& reader, std::uint64_t end_ns,
                                   ledger::GroupSums& sums, RowDone done) {
  return groups_of(reader, {end_ns, false}, true, sums, done);
}

model::Leaks leaks_of(const std::vector<LeakGroup>& groups) {
  std::uint64_t bytes = 0, count = 0, suppressed = 0, released = 0;
  for (const LeakGroup& leak : groups) {
    if (leak.released_by_context) {
      released += leak.bytes;
    } else if (leak.is_suppressed) {
      suppressed += leak.bytes;
    } else {
      bytes += leak.bytes;
      count += leak.count;
    }
  }
  return {bytes, count, suppressed, released};
}

namespace {

// Sets the fields that tell what a search for pointers found of the group's allocations.
void set_reachability(const LeakGroup& leak, model::LeakGroup& row) {
  const auto sum = [&](Reach reach) { return leak.by_reach[static_cast<std::size_t>(reach)]; };
  for (const Reach reach : {Reach::reachable, Reach::unknown, Reach::interior, Reach::lost})
    if (sum(reach).count != 0) row.reachability = std::string(reach_name(reach));
  if (!row.reachability) return;
  const auto set = [&](Reach reach, model::Figure& count, model::Figure& bytes) {
    count = sum(reach).count;
    bytes = sum(reach).bytes;
  };
  set(Reach::lost, row.lost_count, row.lost_bytes);
  set(Reach::interior, row.interior_count, row.interior_bytes);
  set(Reach::reachable, row.reachable_count, row.reachable_bytes);
  set(Reach::unknown, row.unknown_count, row.unknown_bytes);
}

}  // namespace

void put_leak_groups(const ledger::Reader& reader, const std::vector<LeakGroup>& groups,
                     const CallFrames& frames, Put<model::LeakGroup> put) {
  for (const LeakGroup& leak : groups) {
    model::LeakGroup row;
    row.stack = frames.known_stack(leak.group.stack);
    const std::vector<NamedFrame> named = frames.named_frames(row.stack);
    row.where = users_location(named);
    const auto hook = reader.hook(leak.group.api.value);
    GroupLabel label = label_group(hook ? hook->name : "", named);
    row.kind = kind_name(leak.group.kind);
    if (!label.api.empty()) row.api = std::move(label.api);
    row.fingerprint = frames.fingerprint(row.kind, row.api.value_or(""), named);
    row.device = device_id(leak.group.device);
    row.count = leak.count;
    row.bytes = leak.bytes;
    row.first_ns = leak.first_ns;
    row.last_ns = leak.last_ns;
    if (label.module != 0) row.module = label.module;
    row.allocations = leak.group.allocations;
    if (leak.released_by_context) {
      row.released_by = "context";
    } else {
      set_growth(leak, row);
      set_reachability(leak, row);
      row.named_steps = leak.named_steps;
      std::ranges::copy(leak.growth.by_quarter, row.count_by_quarter.emplace().begin());
    }
    row.suppressed = leak.is_suppressed;
    if (leak.example) row.example_address = address_text(leak.example->value);
    row.unmapped_count = leak.unmapped_count;
    put(row);
  }
}

}  // namespace cuwarden
