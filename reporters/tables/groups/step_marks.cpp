#include "reporters/tables/groups/step_marks.hpp"

#include <algorithm>

#include "reporters/model/each_row.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden {

StepMarks::StepMarks(const ledger::Reader& reader) {
  each_row(reader, ledger::RegionId::steps, &ledger::Reader::step_mark, [&](const auto& mark) {
    const bool follows = marks_.empty() || (mark.number > marks_.back().number &&
                                            mark.time_ns >= marks_.back().time_ns);
    if (!follows || mark.number > model::largest_number) return;
    marks_.push_back(mark);
    if (mark.name.find_first_not_of(" \t\r\n") != mark.name.npos) named_.push_back(mark);
  });
  if (marks_.empty()) return;
  const std::uint64_t counted = reader.process().steps;
  count_ = std::max(marks_.back().number, counted <= model::largest_number ? counted : 0);
}

std::uint64_t StepMarks::at(std::uint64_t time_ns) const {
  const auto next = std::ranges::upper_bound(marks_, time_ns, {}, &ledger::StepMarkView::time_ns);
  return next == marks_.begin() ? 0 : std::prev(next)->number;
}

std::string_view StepMarks::name_at(std::uint64_t time_ns) const {
  const auto next = std::ranges::upper_bound(named_, time_ns, {}, &ledger::StepMarkView::time_ns);
  if (next == named_.begin()) return {};
  const ledger::StepMarkView& step = *std::prev(next);
  return step.name_end_ns == 0 || time_ns < step.name_end_ns ? step.name : std::string_view();
}

std::uint64_t StepMarks::usual_ns() const {
  if (marks_.size() < 2) return 0;
  const ledger::StepMarkView &first = marks_.front(), &last = marks_.back();
  return (last.time_ns - first.time_ns) / (last.number - first.number);
}

std::uint64_t StepMarks::end_ns() const {
  return marks_.size() < 2 ? 0 : marks_.back().time_ns + usual_ns();
}

void StepMarks::put_steps(Put<model::Step> put) const {
  for (const ledger::StepMarkView& mark : marks_) {
    model::Step row;
    row.number = mark.number;
    row.time_ns = mark.time_ns;
    row.name = model::text_or_null(mark.name);
    if (mark.name_end_ns != 0) row.name_end_ns = mark.name_end_ns;
    put(row);
  }
}

bool StepMarks::cover(std::uint64_t time_ns) const {
  if (marks_.size() < 2) return false;
  const ledger::StepMarkView& last = marks_.back();
  // Rows are missing for less than 1 / exact_steps of the steps.
  const std::uint64_t missing = last.number / ledger::exact_steps;
  const std::uint64_t tolerance_ns = (4 + missing) * usual_ns() + 20'000'000;
  return time_ns <= last.time_ns || time_ns - last.time_ns <= tolerance_ns;
}

}  // namespace cuwarden
