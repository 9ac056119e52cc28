// Applies suppressions to the leaks of a report.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/report.hpp"

namespace cuwarden {

// Returns a row of the report's table `suppressions` for each pattern, with no leak yet.
std::vector<model::Suppression> suppression_rows(const std::vector<std::string>& patterns);
// Adds a leak group to the figures of a rule.
void count_suppressed(model::Suppression&, model::Figure count, model::Figure bytes);

// Sets, by the patterns of the report's table `suppressions`, which leak groups are suppressed.
// Also sets the figures of that table, and the sums in `leaks`. In a redacted report, suppressed
// groups stay suppressed, and figures of the table only increase. Does nothing if the table is
// empty.
void apply_suppressions(model::Report&);

}  // namespace cuwarden
