#include "reporters/leak_groups.hpp"

#include <algorithm>
#include <unordered_map>

#include "reporters/cuda_frames.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

struct Live {
  std::uint64_t count = 0, bytes = 0, first_ns = 0, last_ns = 0, unmapped = 0;
  DeviceAddress oldest;
  Growth growth;
};

template <class Visit>
void each_live_record(const ledger::Reader& reader, const Visit& visit) {
  const std::uint64_t rows = reader.rows(RegionId::records);
  for (std::uint64_t row = 1; row < rows; ++row) {
    const auto record = reader.record(row);
    if (record && (record->flags & ledger::record_counts_no_bytes) == 0) visit(*record);
  }
}

std::unordered_map<std::uint32_t, Live> live_by_group(const ledger::Reader& reader,
                                                      std::uint64_t end_ns) {
  std::unordered_map<std::uint32_t, Live> groups;
  each_live_record(reader, [&](const ledger::RecordView& record) {
    Live& live = groups[record.group.value];
    if (live.count == 0 || record.time_ns < live.first_ns) {
      live.first_ns = record.time_ns;
      live.oldest = record.address;
    }
    live.last_ns = std::max(live.last_ns, record.time_ns);
    ++live.count;
    live.bytes += record.bytes.value;
    if (record.space == Space::vmm_handle && record.mappings == 0 && record.references > 0) {
      ++live.unmapped;
    }
  });
  for (auto& [group, live] : groups) {
    live.growth.first_ns = live.first_ns;
    live.growth.end_ns = end_ns;
  }
  each_live_record(reader, [&](const ledger::RecordView& record) {
    const auto known = groups.find(record.group.value);  // a live ledger may have got new ones
    if (known != groups.end()) known->second.growth.add(record.time_ns, record.bytes.value);
  });
  return groups;
}

std::vector<LeakGroup> groups_of(const ledger::Reader& reader, std::uint64_t end_ns,
                                 bool is_running, ledger::GroupSums& sums) {
  const auto by_group = live_by_group(reader, end_ns);
  std::vector<LeakGroup> result;
  const std::uint64_t rows = reader.rows(RegionId::groups);
  for (std::uint64_t row = 1; row < rows; ++row) {
    const auto group = reader.group(row);
    if (!group) continue;
    sums.add(*group);
    const auto live = by_group.find(group->id.value);
    const bool has_records = live != by_group.end();
    if (is_running ? group->live_count > 0 : has_records) {
      LeakGroup leak;
      leak.group = *group;
      if (has_records) {
        leak.count = live->second.count;
        leak.bytes = live->second.bytes;
        leak.first_ns = live->second.first_ns;
        leak.last_ns = live->second.last_ns;
        leak.example = live->second.oldest;
        if (group->kind == Kind::vmm) leak.unmapped_count = live->second.unmapped;
        leak.growth = live->second.growth;
      }
      if (is_running) {
        leak.count = group->live_count;
        leak.bytes = ledger::GroupSums::live_bytes(*group);
      }
      result.push_back(leak);
    }
    if (group->released_count > 0) {
      LeakGroup released;
      released.group = *group;
      released.released_by_context = true;
      released.count = group->released_count;
      released.bytes = group->released_bytes;
      result.push_back(released);
    }
  }
  std::ranges::sort(result, [](const LeakGroup& left, const LeakGroup& right) {
    if (left.bytes != right.bytes) return left.bytes > right.bytes;
    if (left.count != right.count) return left.count > right.count;
    return left.group.id < right.group.id;
  });
  return result;
}

}  // namespace

std::vector<LeakGroup> leak_groups(const ledger::Reader& reader, std::uint64_t end_ns,
                                   ledger::GroupSums& sums) {
  return groups_of(reader, end_ns, false, sums);
}

std::vector<LeakGroup> live_groups(const ledger::Reader& reader, std::uint64_t end_ns,
                                   ledger::GroupSums& sums) {
  return groups_of(reader, end_ns, true, sums);
}

GroupLabel label_group(std::string_view recorded_api, std::span<const NamedFrame> frames) {
  GroupLabel label;
  label.api = recorded_api;
  for (const NamedFrame& frame : frames) {
    if (frame.module == 0) continue;
    if (!is_cuda_frame(frame.path, frame.function, frame.file)) {
      label.module = frame.module;
      break;
    }
    const std::string_view entry = runtime_entry(frame.function);
    if (!entry.empty() && is_driver_api(recorded_api)) label.api = entry;
  }
  return label;
}

}  // namespace cuwarden
