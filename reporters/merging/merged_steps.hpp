// Sums up the leaks of a merged report by named step, such as a test.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/merged_report.hpp"

namespace cuwarden {

// A named step whose memory was not freed, with the sums over all leaks and processes.
struct LeakingStep {
  std::string name;  // name of the step
  // Number of its allocations that were not freed, and their bytes; null: of some it is unknown.
  model::Figure count = 0, bytes = 0;
  // leaks: rows of the table `leaks` whose allocations the step made. processes: rows of the table
  // `processes` in which it made them. In both, those with the most bytes of the step come first.
  std::vector<model::Id> leaks, processes;
};

// Returns the named steps of the merged report's leaks, those with the most bytes first
// and those with unknown bytes last.
std::vector<LeakingStep> leaking_steps(const model::MergedReport&);

}  // namespace cuwarden
