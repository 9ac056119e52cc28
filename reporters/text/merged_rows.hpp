// Merges rows that look alike to people: stacks whose frames have the same functions and lines
// differ only in the instructions that made the calls. The text shows such rows as one, with their
// sums.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// Numbers the stacks of a report so that stacks with equal visible frames have equal numbers.
class VisibleStacks {
 public:
  explicit VisibleStacks(const IndexedReport& report) : report_(report) {}
  std::size_t number_of(model::MaybeId stack);

 private:
  const IndexedReport& report_;
  std::map<std::string, std::size_t> lines_;  // numbers of what is shown of a frame
  std::unordered_map<model::Id, std::size_t> lines_by_frame_;
  std::map<std::vector<std::size_t>, std::size_t> stacks_;  // numbers of lists of such lines
  std::map<model::MaybeId, std::size_t> stacks_by_id_;
};

// Sets the growth of a merged row. The merged row grows if one of `rows` grows, or if all together
// have live allocations from most of the run.
void judge_growth(const IndexedReport&, const std::vector<const model::LeakGroup*>& rows,
                  model::LeakGroup& merged);

// Sets the figures of a merged row: the sums of `rows`, and the earliest and latest time at which
// an allocation was made.
template <class Row>
void merge_figures(const IndexedReport& report, const std::vector<const Row*>& rows, Row& merged) {
  const auto add_up = [&](model::Figure Row::*figure) {
    model::Figure sum;
    for (const Row* row : rows)
      if (row->*figure) sum = sum.value_or(0) + *(row->*figure);
    merged.*figure = sum;
  };
  add_up(&Row::count);
  add_up(&Row::bytes);
  if constexpr (requires { &Row::allocations; }) add_up(&Row::allocations);
  if constexpr (requires { &Row::unmapped_count; }) add_up(&Row::unmapped_count);
  if constexpr (requires { &Row::locked_bytes; }) add_up(&Row::locked_bytes);
  if constexpr (requires { &Row::slab_locked_bytes; }) add_up(&Row::slab_locked_bytes);
  if constexpr (requires { &Row::growth_bytes_per_minute; }) add_up(&Row::growth_bytes_per_minute);
  if constexpr (requires { &Row::first_ns; }) {
    for (const Row* row : rows) {
      if (row->first_ns)
        merged.first_ns = std::min(merged.first_ns.value_or(UINT64_MAX), *row->first_ns);
      if (row->last_ns) merged.last_ns = std::max(merged.last_ns.value_or(0), *row->last_ns);
    }
  }
  if constexpr (requires { &Row::growth; }) judge_growth(report, rows, merged);
}

// Merges rows whose visible stacks and whose `key` are equal. A merged row is the first of its
// rows, with the figures of all. Returns them sorted by bytes, most first.
template <class Row, class Key>
std::vector<Row> merged_rows(const IndexedReport& report, const std::vector<const Row*>& rows,
                             const Key& key) {
  VisibleStacks stacks(report);
  std::vector<std::vector<const Row*>> parts;
  std::map<std::pair<std::size_t, decltype(key(*rows.front()))>, std::size_t> known;
  for (const Row* row : rows) {
    const auto part = known.try_emplace({stacks.number_of(row->stack), key(*row)}, parts.size());
    if (part.second) parts.emplace_back();
    parts[part.first->second].push_back(row);
  }
  std::vector<Row> merged;
  merged.reserve(parts.size());
  for (const auto& part : parts) {
    merged.push_back(*part.front());
    if (part.size() > 1) merge_figures(report, part, merged.back());
  }
  std::ranges::stable_sort(merged, std::greater(),
                           [](const Row& row) { return row.bytes.value_or(0); });
  return merged;
}

// Returns the report's leaks, merged by their visible stacks. Leaves out memory that a context
// released, and suppressed leaks.
std::vector<model::LeakGroup> merged_leaks(const IndexedReport&);

}  // namespace cuwarden
