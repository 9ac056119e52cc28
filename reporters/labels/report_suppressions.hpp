// Applies suppressions (rules that exclude known leaks) to the leaks of a report.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/report.hpp"

namespace cuwarden {

// Returns a row of the report's table `suppressions` for each pattern. The figures of the rows are
// 0.
std::vector<model::Suppression> suppression_rows(const std::vector<std::string>& patterns);
// Adds a leak group to the figures of the rule that suppresses it. `count` and `bytes`: number and
// bytes of the group's allocations; null counts as 0.
void count_suppressed(model::Suppression&, model::Figure count, model::Figure bytes);

// Sets which leak groups are suppressed, by the patterns of the report's table `suppressions`. Also
// sets the figures of that table, and the sums in `leaks`. In a redacted report, groups that are
// suppressed stay so, and figures of the table only increase. Does nothing if the table is empty.
void apply_suppressions(model::Report&);

}  // namespace cuwarden
