// Finds the suppressions (rules that exclude known leaks) that matched nothing in several reports.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "reporters/model/report.hpp"

namespace cuwarden {

// Sums over reports which of their suppressions matched a leak. A rule of one report is that of
// another one if their patterns are equal.
class UnmatchedSuppressions {
 public:
  // Adds a report's table `suppressions`.
  void add(const std::vector<model::Suppression>& rules);
  // Adds the rows of a report's table `suppressions` that have one of the patterns.
  void add(const std::vector<model::Suppression>& rules, const std::vector<std::string>& patterns);

  // True if a rule that was added has matched nothing so far.
  bool has_any() const { return unmatched_ != 0; }

  // Returns a line with the number of reports, and one for each rule that matched nothing in any of
  // them, in the order in which the rules were added. Empty: each rule matched a leak.
  std::string text() const;

 private:
  void add_rule(const model::Suppression&);

  std::map<std::string, bool> matched_;  // patterns → true if the rule matched a leak
  std::vector<std::string> patterns_;  // keys of `matched_`, in the order in which they were added
  std::size_t unmatched_ = 0;          // number of the patterns that matched nothing
  std::size_t reports_ = 0;            // number of reports that were added
};

}  // namespace cuwarden
