#include "reporters/comparison/unmatched_suppressions.hpp"

#include <set>

#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {

void UnmatchedSuppressions::add_rule(const model::Suppression& rule) {
  const auto [known, is_new] = matched_.try_emplace(rule.pattern, false);
  if (is_new) {
    patterns_.push_back(rule.pattern);
    ++unmatched_;
  }
  if (known->second || rule.groups.value_or(0) == 0) return;
  known->second = true;
  --unmatched_;
}

void UnmatchedSuppressions::add(const std::vector<model::Suppression>& rules) {
  ++reports_;
  for (const model::Suppression& rule : rules) add_rule(rule);
}

void UnmatchedSuppressions::add(const std::vector<model::Suppression>& rules,
                                const std::vector<std::string>& patterns) {
  ++reports_;
  const std::set<std::string> wanted(patterns.begin(), patterns.end());
  for (const model::Suppression& rule : rules)
    if (wanted.contains(rule.pattern)) add_rule(rule);
}

std::string UnmatchedSuppressions::text() const {
  if (!has_any()) return "";
  std::string text = "suppressions that matched nothing in " + human_count(reports_) +
                     (reports_ == 1 ? " report:\n" : " reports:\n");
  for (const std::string& pattern : patterns_)
    if (!matched_.at(pattern)) text += "    leak:" + printable(pattern) + "\n";
  return text;
}

}  // namespace cuwarden
