#include "reporters/tables/groups/step_marks.hpp"

#include <algorithm>

#include "reporters/model/each_row.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden {

StepMarks::StepMarks(const ledger::Reader& reader) {
  each_row(reader, ledger::RegionId::steps, &ledger::Reader::step_mark, [&](const auto& mark) {
    const bool follows = marks_.empty() || (mark.number > marks_.back().number &&
                                            mark.time_ns >= marks_.back().time_ns);
    if (follows && mark.number <= model::largest_number) marks_.push_back(mark);
  });
  if (marks_.empty()) return;
  const std::uint64_t counted = reader.process().steps;
  count_ = std::max(marks_.back().number, counted <= model::largest_number ? counted : 0);
}

std::uint64_t StepMarks::at(std::uint64_t time_ns) const {
  const auto next = std::ranges::upper_bound(marks_, time_ns, {}, &ledger::StepMarkView::time_ns);
  return next == marks_.begin() ? 0 : std::prev(next)->number;
}

bool StepMarks::cover(std::uint64_t time_ns) const {
  if (marks_.size() < 2) return false;
  const ledger::StepMarkView &first = marks_.front(), &last = marks_.back();
  const std::uint64_t usual_ns = (last.time_ns - first.time_ns) / (last.number - first.number);
  // The clock has ticks of some milliseconds. Rows are missing for less than 1 / exact_steps of the
  // steps.
  const std::uint64_t missing = last.number / ledger::exact_steps;
  const std::uint64_t tolerance_ns = (4 + missing) * usual_ns + 20'000'000;
  return time_ns <= last.time_ns || time_ns - last.time_ns <= tolerance_ns;
}

}  // namespace cuwarden
