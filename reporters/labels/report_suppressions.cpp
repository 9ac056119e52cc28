#include "reporters/labels/report_suppressions.hpp"

#include <cstdint>

#include "reporters/labels/named_stacks.hpp"
#include "reporters/labels/suppressions.hpp"

namespace cuwarden {

std::vector<model::Suppression> suppression_rows(const std::vector<std::string>& patterns) {
  std::vector<model::Suppression> rows;
  for (const std::string& pattern : patterns) rows.push_back({pattern, 0, 0, 0});
  return rows;
}

void count_suppressed(model::Suppression& row, model::Figure count, model::Figure bytes) {
  row.groups = row.groups.value_or(0) + 1;
  row.count = row.count.value_or(0) + count.value_or(0);
  row.bytes = row.bytes.value_or(0) + bytes.value_or(0);
}

void apply_suppressions(model::Report& report) {
  if (report.suppressions.empty()) return;
  std::vector<std::string> patterns;
  for (const model::Suppression& row : report.suppressions) patterns.push_back(row.pattern);
  // The names in a redacted report are not those that its rules have matched.
  if (!report.redacted) report.suppressions = suppression_rows(patterns);
  Suppressions rules(std::move(patterns));
  const NamedStacks stacks(report);
  std::uint64_t count = 0, bytes = 0, suppressed_bytes = 0;
  for (model::LeakGroup& group : report.leak_groups) {
    if (group.released_by) continue;
    if (report.redacted && group.suppressed) {
      suppressed_bytes += group.bytes.value_or(0);
      continue;
    }
    const auto rule = rules.rule_for(stacks.frames(group.stack));
    group.suppressed = rule.has_value();
    if (rule) {
      count_suppressed(report.suppressions[*rule], group.count, group.bytes);
      suppressed_bytes += group.bytes.value_or(0);
    } else {
      count += group.count.value_or(0);
      bytes += group.bytes.value_or(0);
    }
  }
  report.leaks.count = count;
  report.leaks.bytes = bytes;
  report.leaks.suppressed_bytes = suppressed_bytes;
}

}  // namespace cuwarden
