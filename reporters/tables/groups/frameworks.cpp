#include "reporters/tables/groups/frameworks.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "reporters/labels/users_frame.hpp"
#include "reporters/model/device_id.hpp"
#include "reporters/model/each_row.hpp"
#include "reporters/owners/known_libraries.hpp"
#include "reporters/tables/groups/library_reserves.hpp"
#include "runtime_hooks/core/caching_allocators.hpp"
#include "runtime_hooks/ledger/read/group_sums.hpp"

namespace cuwarden {
namespace {

using ledger::Fact;
using ledger::RegionId;

constexpr std::string_view pytorch = "PyTorch";

// A range of addresses; `end` is exclusive.
struct Range {
  std::uint64_t start = 0, end = 0;
};

// The numbers of groups of a device whose memory PyTorch's allocator of device memory asked for.
class SegmentGroups {
 public:
  SegmentGroups(const ledger::Reader& reader, DeviceOrdinal device)
      : reader_(reader), device_(device), modules_(reader) {}
  // True if the group's memory is that of segments.
  bool contain(const ledger::GroupView& group) {
    return group.device == device_ && is_pytorch_allocator(modules_.asker_of(group.stack));
  }
  // True if the record is a segment of the allocator's, or a part of one that grows.
  bool contain(const ledger::RecordView& record) {
    if (record.space == Space::pointer) return contains(record.group);
    if (record.space != Space::vmm_mapping) return false;
    // A mapping belongs to the memory that is mapped.
    const auto memory = reader_.record(record.related);
    return memory && contains(memory->group);
  }

 private:
  bool contains(GroupId id) {
    const auto [known, is_new] = known_.try_emplace(id.value, false);
    if (!is_new) return known->second;
    const auto group = reader_.group(id.value);
    return known->second = group && contain(*group);
  }

  const ledger::Reader& reader_;
  DeviceOrdinal device_;
  StackModules modules_;
  std::map<std::uint32_t, bool> known_;  // results by the group's number
};

// Sorts the ranges, and makes one of those that touch each other.
void merge(std::vector<Range>& ranges) {
  std::ranges::sort(ranges, {}, &Range::start);
  std::size_t kept = 0;
  for (const Range& range : ranges) {
    if (kept != 0 && range.start <= ranges[kept - 1].end)
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    else
      ranges[kept++] = range;
  }
  ranges.resize(kept);
}

// Adds what the blocks leave free of a segment. `block`: the first block that ends behind the
// segment's start; is moved behind the segment.
void add_free(const Range& segment, std::vector<Range>::const_iterator& block,
              std::vector<Range>::const_iterator end, FreeBlocks& sums) {
  bool is_used = false;
  std::uint64_t at = segment.start, holes = 0, bytes = 0;
  const auto add = [&](std::uint64_t until) {
    if (until <= at) return;
    ++holes;
    bytes += until - at;
    sums.largest_bytes = std::max(sums.largest_bytes, until - at);
  };
  for (; block != end && block->start < segment.end; ++block) {
    is_used = true;
    add(block->start);
    at = std::max(at, block->end);
  }
  add(segment.end);
  if (!is_used) return;
  sums.hole_count += holes;
  sums.hole_bytes += bytes;
}

model::Figure known(std::uint64_t value) {
  return value == ledger::unknown_value ? std::nullopt : model::Figure(value);
}

// Returns the live bytes of the device for which PyTorch's allocator asked; null if a call stack
// that would tell is missing.
std::optional<std::uint64_t> asked_by_pytorch(const ledger::Reader& reader, DeviceOrdinal device) {
  SegmentGroups asked(reader, device);
  std::uint64_t bytes = 0;
  bool is_whole = true;
  each_row(reader, RegionId::groups, &ledger::Reader::group, [&](const auto& group) {
    const std::uint64_t live = ledger::GroupSums::live_bytes(group);
    if (live == 0 || group.device != device || !is_asked_for(group.kind) ||
        group.kind == Kind::imported)
      return;
    is_whole = is_whole && group.stack.value != 0;
    if (asked.contain(group)) bytes += live;
  });
  return is_whole ? std::optional(bytes) : std::nullopt;
}

// Adds the figures that frameworks have given. `told`: gets the frameworks with latest figures, and
// their devices.
void put_told(const ledger::Reader& reader, Put<model::Framework> put,
              std::set<std::pair<std::string, std::int32_t>>& told) {
  each_row(reader, RegionId::frameworks, &ledger::Reader::framework_pool, [&](const auto& pool) {
    if (pool.stack.value != 0) return;
    model::Framework row;
    row.framework = pool.framework;
    if (!pool.framework_pool.empty()) row.pool = std::string(pool.framework_pool);
    row.device = device_id(pool.device);
    if (pool.incident.value != 0) row.incident = pool.incident.value;
    row.source = "framework";
    row.time_ns = pool.time_ns;
    row.reserved_bytes = known(pool.reserved_bytes);
    row.allocated_bytes = known(pool.allocated_bytes);
    if (pool.framework == pytorch && pool.framework_pool.empty() && row.reserved_bytes)
      row.reserved_bytes = reserved_by_pytorch(reader, pool.device, *row.reserved_bytes,
                                               row.allocated_bytes.value_or(0));
    row.peak_allocated_bytes =
        pool.incident.value == 0 ? known(pool.peak_allocated_bytes) : std::nullopt;
    row.hole_count = known(pool.hole_count);
    row.hole_bytes = known(pool.hole_bytes);
    row.largest_free_bytes = known(pool.largest_free_bytes);
    if (pool.framework == pytorch && pool.incident.value == 0 && pool.framework_pool.empty()) {
      if (const auto free = free_blocks_of_pytorch(reader, pool.device)) {
        row.hole_count = free->hole_count;
        row.hole_bytes = free->hole_bytes;
        row.largest_free_bytes = free->largest_bytes;
      }
    }
    if (pool.incident.value == 0 && row.reserved_bytes)
      told.emplace(row.framework, pool.device.value);
    put(row);
  });
}

// Adds PyTorch's figures at refused requests.
void put_at_incidents(const std::vector<IncidentCase>& incidents, Put<model::Framework> put) {
  for (const IncidentCase& incident : incidents) {
    const auto reserved = incident.incident.fact(Fact::pytorch_reserved_bytes);
    if (!reserved) continue;
    model::Framework row;
    row.framework = pytorch;
    row.device = device_id(incident.device);
    row.incident = incident.incident.id.value;
    row.source = "framework";
    row.time_ns = incident.incident.time_ns;
    row.reserved_bytes = reserved;
    row.allocated_bytes = incident.incident.fact(Fact::pytorch_allocated_bytes);
    row.hole_count = incident.incident.fact(Fact::pytorch_hole_count);
    row.hole_bytes = incident.incident.fact(Fact::pytorch_hole_bytes);
    row.largest_free_bytes = incident.incident.fact(Fact::pytorch_largest_free_bytes);
    put(row);
  }
}

// Sets the fields of the row that follow from its stack and its framework.
void name_site(const CallFrames& frames, model::FrameworkSite& row) {
  const std::vector<NamedFrame> named = frames.named_frames(row.stack);
  row.fingerprint = frames.fingerprint(kind_name(Kind::framework_block), row.framework, named);
  row.where = users_location(named);
}

}  // namespace

std::vector<LeakGroup> take_blocks(std::vector<LeakGroup>& leaks) {
  const auto is_block = [](const LeakGroup& leak) {
    return leak.group.kind == Kind::framework_block;
  };
  std::vector<LeakGroup> blocks;
  std::ranges::copy_if(leaks, std::back_inserter(blocks), is_block);
  std::erase_if(leaks, is_block);
  return blocks;
}

std::uint64_t reserved_by_pytorch(const ledger::Reader& reader, DeviceOrdinal device,
                                  std::uint64_t reported_bytes, std::uint64_t allocated_bytes) {
  // Other libraries may have asked for segments (torch.cuda.MemPool). Blocks lie in segments.
  const auto asked = asked_by_pytorch(reader, device);
  return asked && *asked >= allocated_bytes ? std::min(reported_bytes, *asked) : reported_bytes;
}

std::uint64_t idle_of_pytorch(const ledger::Reader& reader, DeviceOrdinal device) {
  std::uint64_t idle = 0;
  each_row(reader, RegionId::frameworks, &ledger::Reader::framework_pool, [&](const auto& pool) {
    if (pool.framework != pytorch || !pool.framework_pool.empty() || pool.device != device ||
        pool.incident.value != 0 || pool.stack.value != 0)
      return;
    const model::Figure reserved = known(pool.reserved_bytes),
                        allocated = known(pool.allocated_bytes);
    if (!reserved || !allocated) return;
    idle = reserved_by_pytorch(reader, device, *reserved, *allocated);
    idle -= std::min(idle, *allocated);
  });
  return idle;
}

std::optional<FreeBlocks> free_blocks_of_pytorch(const ledger::Reader& reader,
                                                 DeviceOrdinal device) {
  SegmentGroups asked(reader, device);
  std::map<std::uint32_t, bool> groups;  // by number: true if its blocks are the device's
  std::vector<Range> segments, mapped, blocks;
  each_row(reader, RegionId::records, &ledger::Reader::record, [&](const auto& record) {
    const std::uint64_t start = record.address.value, bytes = record.bytes.value;
    if (bytes == 0 || start > UINT64_MAX - bytes) return;
    if (record.space == Space::framework_block) {
      const auto [known, is_new] = groups.try_emplace(record.group.value, false);
      if (is_new) {
        const auto group = reader.group(record.group.value);
        known->second = group && group->device == device;
      }
      if (known->second) blocks.push_back({start, start + bytes});
    } else if (asked.contain(record)) {
      (record.space == Space::pointer ? segments : mapped).push_back({start, start + bytes});
    }
  });
  if (blocks.empty()) return std::nullopt;
  std::ranges::sort(blocks, {}, &Range::start);
  // A segment that grows has several mappings. Other segments are apart, even if they touch.
  merge(mapped);
  segments.insert(segments.end(), mapped.begin(), mapped.end());
  std::ranges::sort(segments, {}, &Range::start);
  FreeBlocks sums;
  auto block = blocks.cbegin();
  for (const Range& segment : segments) {
    while (block != blocks.cend() && block->end <= segment.start) ++block;
    add_free(segment, block, blocks.cend(), sums);
  }
  return sums;
}

void put_frameworks(const ledger::Reader& reader, const std::vector<LeakGroup>& leaks,
                    const std::vector<IncidentCase>& incidents, const CallFrames& frames,
                    Put<model::Framework> put) {
  std::set<std::pair<std::string, std::int32_t>> told;
  put_told(reader, put, told);
  put_at_incidents(incidents, put);
  std::map<std::uint32_t, std::string> names;  // frameworks' names by module; empty: no framework's
  // Bytes of live allocations by the framework whose library asked, and the device.
  std::map<std::pair<std::string, std::int32_t>, std::uint64_t> asked;
  for (const LeakGroup& live : leaks) {
    if (live.released_by_context || !is_asked_for(live.group.kind)) continue;
    const std::uint32_t module = asker_of(reader, live.group.stack, frames);
    if (module == 0) continue;
    const auto [name, is_new] = names.try_emplace(module);
    const std::string& path = frames.modules().at(module).path;
    if (is_new && is_caching_allocator(path)) name->second = library_name(path);
    const std::pair key(name->second, live.group.device.value);
    if (!name->second.empty() && !told.contains(key)) asked[key] += live.bytes;
  }
  for (const auto& [key, bytes] : asked) {
    model::Framework row;
    row.framework = key.first;
    row.device = device_id(DeviceOrdinal{key.second});
    row.source = "call_stacks";
    row.reserved_bytes = bytes;
    put(row);
  }
}

void add_stacks_of_frameworks(const ledger::Reader& reader, CallFrames& frames) {
  each_row(reader, RegionId::frameworks, &ledger::Reader::framework_pool,
           [&](const auto& pool) { frames.add_stack(pool.stack); });
}

void put_framework_sites(const ledger::Reader& reader, const std::vector<LeakGroup>& blocks,
                         const CallFrames& frames, Put<model::FrameworkSite> put) {
  each_row(reader, RegionId::frameworks, &ledger::Reader::framework_pool, [&](const auto& site) {
    if (site.stack.value == 0 || site.allocated_bytes == 0) return;
    model::FrameworkSite row;
    row.framework = site.framework;
    row.device = device_id(site.device);
    row.stack = frames.known_stack(site.stack);
    name_site(frames, row);
    row.count = known(site.allocated_count);
    row.bytes = known(site.allocated_bytes);
    put(row);
  });
  for (const LeakGroup& block : blocks) {
    if (block.released_by_context) continue;
    model::FrameworkSite row;
    row.framework = pytorch;
    row.device = device_id(block.group.device);
    row.stack = frames.known_stack(block.group.stack);
    name_site(frames, row);
    row.count = block.count;
    row.bytes = block.bytes;
    row.allocations = block.group.allocations;
    row.first_ns = block.first_ns;
    row.last_ns = block.last_ns;
    set_growth(block, row);
    put(row);
  }
}

}  // namespace cuwarden
