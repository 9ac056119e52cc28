#include "reporters/text/headline/top_holders.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

#include "reporters/text/elements/merged_rows.hpp"
#include "reporters/verdicts/verdicts.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {

bool is_block(const model::IncidentHolder& holder) {
  return holder.kind == kind_name(Kind::framework_block);
}

bool holders_lock_slabs(const model::Incident& incident,
                        const std::vector<model::IncidentHolder>& holders) {
  return named_holders(incident.verdict) == NamedHolders::own_in_slabs &&
         std::ranges::any_of(
             holders, [](const auto& holder) { return holder.slab_locked_bytes.value_or(0) > 0; });
}

std::vector<model::IncidentHolder> top_holders(const IndexedReport& report,
                                               const model::Incident& incident,
                                               const Style& style) {
  std::vector<const model::IncidentHolder*> rows;
  for (const auto& holder : report->incident_holders)
    if (holder.incident == incident.id) rows.push_back(&holder);
  std::vector<model::IncidentHolder> holders = merged_rows(
      report, rows, [](const auto& holder) { return holder.kind; }, style);
  const bool locked = holders_lock_slabs(incident, holders);
  std::ranges::stable_sort(holders, std::greater(), [locked](const auto& holder) {
    return std::tuple(locked ? holder.slab_locked_bytes.value_or(0) : 0, grows(holder),
                      is_block(holder), holder.bytes.value_or(0));
  });
  return holders;
}

}  // namespace cuwarden
