#include "reporters/text/elements/ranked_leaks.hpp"

#include <algorithm>

#include "reporters/labels/library_memory.hpp"
#include "reporters/text/elements/leak_check.hpp"
#include "reporters/text/elements/merged_rows.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {

int rank_of_leak(const model::LeakGroup& group) {
  const bool is_lost = group.lost_count.value_or(0) != 0, grows = group.growth == "growing";
  return is_lost && grows ? 0 : is_lost ? 1 : grows ? 2 : 3;
}

std::string growth_words(const model::LeakGroup& group) {
  if (const std::uint64_t by_step = group.growth_bytes_per_step.value_or(0))
    return "growing by " + human_bytes(by_step) + " a step since step " +
           human_count(group.first_step.value_or(0));
  constexpr std::uint64_t long_enough_ns = 5'000'000'000;
  const std::uint64_t rate = group.growth_bytes_per_minute.value_or(0);
  const std::uint64_t first = group.first_ns.value_or(0), last = group.last_ns.value_or(0);
  if (rate == 0 || last < first + long_enough_ns) return "growing";
  return "growing by " + human_bytes(rate) + " a minute";
}

std::string words_of_no_growth(const IndexedReport& report) {
  // Merged rows could hide that the growth of some of their rows is unknown.
  const bool is_known =
      std::ranges::all_of(report->leak_groups,
                          [](const model::LeakGroup& group) {
                            return group.growth || group.released_by || group.suppressed;
                          }) &&
      std::ranges::all_of(report->framework_sites,
                          [](const model::FrameworkSite& site) { return site.growth.has_value(); });
  return is_known ? "none of it grows" : "none of it is known to grow";
}

std::vector<model::LeakGroup> main_leaks(const IndexedReport& report, const Style& style,
                                         RowDone done) {
  std::vector<model::LeakGroup> groups = merged_leaks(report, style, done);
  std::erase_if(groups, [&](const model::LeakGroup& group) {
    done();
    return holds_listed_blocks(report, group) ||
           is_kept_by_library(library_memory(report, group).use);
  });
  std::ranges::stable_sort(groups, {}, rank_of_leak);
  return groups;
}

}  // namespace cuwarden
