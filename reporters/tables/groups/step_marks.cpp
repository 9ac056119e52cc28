#include "reporters/tables/groups/step_marks.hpp"

#include <algorithm>

#include "reporters/model/each_row.hpp"

namespace cuwarden {

StepMarks::StepMarks(const ledger::Reader& reader) {
  // The largest number that a report can have.
  constexpr std::uint64_t most_steps = std::uint64_t{1} << 53;
  each_row(reader, ledger::RegionId::steps, &ledger::Reader::step_mark, [&](const auto& mark) {
    const bool follows = marks_.empty() || (mark.number > marks_.back().number &&
                                            mark.time_ns >= marks_.back().time_ns);
    if (follows && mark.number <= most_steps) marks_.push_back(mark);
  });
  if (marks_.empty()) return;
  const std::uint64_t counted = reader.process().steps;
  count_ = std::max(marks_.back().number, counted <= most_steps ? counted : 0);
}

std::uint64_t StepMarks::at(std::uint64_t time_ns) const {
  const auto next = std::ranges::upper_bound(marks_, time_ns, {}, &ledger::StepMarkView::time_ns);
  return next == marks_.begin() ? 0 : std::prev(next)->number;
}

}  // namespace cuwarden
