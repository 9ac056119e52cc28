#include "reporters/tables/allocation_sites.hpp"

#include <algorithm>

#include "reporters/model/device_id.hpp"
#include "reporters/model/each_row.hpp"

namespace cuwarden {

std::vector<ledger::GroupView> most_allocating(const ledger::Reader& reader) {
  std::vector<ledger::GroupView> most;
  const auto by_bytes = [](const ledger::GroupView& one, const ledger::GroupView& other) {
    return one.allocated_bytes > other.allocated_bytes;
  };
  each_row(reader, ledger::RegionId::groups, &ledger::Reader::group, [&](const auto& group) {
    if (group.allocated_bytes == 0 || !is_asked_for(group.kind)) return;
    // The heap's front is the group with the fewest bytes.
    if (most.size() == most_allocation_sites) {
      if (group.allocated_bytes <= most.front().allocated_bytes) return;
      std::ranges::pop_heap(most, by_bytes);
      most.pop_back();
    }
    most.push_back(group);
    std::ranges::push_heap(most, by_bytes);
  });
  std::ranges::sort_heap(most, by_bytes);
  return most;
}

void put_allocation_sites(const ledger::Reader& reader, const std::vector<ledger::GroupView>& sites,
                          const CallFrames& frames, Put<model::AllocationSite> put) {
  for (const ledger::GroupView& site : sites) {
    model::AllocationSite row;
    row.kind = kind_name(site.kind);
    if (const auto hook = reader.hook(site.api.value)) row.api = model::text_or_null(hook->name);
    row.device = device_id(site.device);
    row.stack = frames.known_stack(site.stack);
    row.allocations = site.allocations;
    row.allocated_bytes = site.allocated_bytes;
    put(row);
  }
}

}  // namespace cuwarden
