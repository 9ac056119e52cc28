#include "tools/cuwarden/top_growth.hpp"

#include <memory>

#include "reporters/leak_groups.hpp"
#include "tools/cuwarden/top_sample.hpp"

namespace cuwarden {
namespace {

// Before that, whatever a program sets up at its start looks like growth.
constexpr std::uint64_t least_age_ns = 5'000'000'000;
constexpr std::uint64_t share = 50;

}  // namespace

void GrowingGroups::look(const ledger::Reader& reader) {
  const std::uint64_t begun_ns = monotonic_ns();
  const std::uint64_t start_ns = reader.process().start_monotonic_ns;
  if (begun_ns < next_look_ns_ || begun_ns < start_ns + least_age_ns) return;
  rates_.clear();
  const auto sums = std::make_unique<ledger::GroupSums>();
  for (const LeakGroup& group : live_groups(reader, begun_ns - start_ns, *sums)) {
    if (group.released_by_context) continue;
    if (const auto rate = group.growth.bytes_per_minute()) rates_[group.group.id.value] = *rate;
  }
  const std::uint64_t end_ns = monotonic_ns();
  next_look_ns_ = end_ns + (end_ns - begun_ns) * share;
}

std::uint64_t GrowingGroups::bytes_per_minute() const {
  std::uint64_t sum = 0;
  for (const auto& [group, rate] : rates_) sum += rate;
  return sum;
}

std::optional<std::uint64_t> GrowingGroups::bytes_per_minute(std::uint32_t group) const {
  const auto found = rates_.find(group);
  return found == rates_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace cuwarden
