// Sums up the leaks of a merged report by named step, such as a test.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/merged_report.hpp"

namespace cuwarden {

// A named step (such as a test) that made allocations which were not freed, with sums over all
// leaks and processes.
struct LeakingStep {
  std::string name;  // name of the step
  // Number of the step's allocations that were not freed, and their bytes. Null: the figure is
  // unknown for some leak or process.
  model::Figure count = 0, bytes = 0;
  // leaks: rows of the table `leaks` with allocations that the step made. processes: rows of the
  // table `processes` in which the step made them. Both are sorted by the step's bytes, most first.
  std::vector<model::Id> leaks, processes;
};

// Returns the named steps that made leaks of the merged report, sorted by bytes, most first. Steps
// with unknown bytes come last.
std::vector<LeakingStep> leaking_steps(const model::MergedReport&);

}  // namespace cuwarden
