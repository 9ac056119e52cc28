// Merges rows of a report whose call stacks look alike (VisibleStacks). The text report shows rows
// with such stacks as one row, with their sums.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reporters/model/indexed_report.hpp"
#include "reporters/model/named_steps.hpp"
#include "reporters/model/row_progress.hpp"
#include "reporters/text/elements/visible_stacks.hpp"

namespace cuwarden {

// Sets the field `growth` of `merged`, a leak row into which `rows` were merged and whose sums are
// set. `merged` is growing if one of `rows` is. Otherwise, if the program marked no steps, the live
// allocations of all rows are judged together. If they grow (Growth::growing()), `growth` and
// growth_bytes_per_minute are set. In all other cases, `merged` stays as it is.
void judge_growth(const IndexedReport&, const std::vector<const model::LeakGroup*>& rows,
                  model::LeakGroup& merged);

// Returns the stacks of other rows whose objects share bytes with objects of `rows`
// (ImplicitGroup::shared_with), each once. The stacks of `rows` themselves are left out.
std::vector<model::Id> stacks_beside(const std::vector<const model::ImplicitGroup*>& rows);

// Sets the figures of `merged`, a row into which `rows` were merged: the sums of counts and bytes,
// and the earliest and latest time at which an allocation was made. Unknown figures are left out of
// the sums; a sum of unknown figures only is null. A sum is marked as an estimate if one of its
// figures is one. Also sets the growth of leak rows (judge_growth()).
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
  if constexpr (requires { &Row::survivors; }) add_up(&Row::survivors);
  if constexpr (requires { &Row::unmapped_count; }) add_up(&Row::unmapped_count);
  if constexpr (requires { &Row::lost_count; }) {
    for (const auto figure :
         {&Row::lost_count, &Row::lost_bytes, &Row::interior_count, &Row::interior_bytes,
          &Row::reachable_count, &Row::reachable_bytes, &Row::unknown_count, &Row::unknown_bytes})
      add_up(figure);
  }
  if constexpr (requires { &Row::named_steps; }) {
    merged.named_steps.clear();
    for (const Row* row : rows)
      merged.named_steps.insert(merged.named_steps.end(), row->named_steps.begin(),
                                row->named_steps.end());
    model::sum_up_named_steps(merged.named_steps);
  }
  if constexpr (requires { &Row::released_count; }) add_up(&Row::released_count);
  if constexpr (requires { &Row::kept_bytes; }) add_up(&Row::kept_bytes);
  if constexpr (requires { &Row::locked_bytes; }) add_up(&Row::locked_bytes);
  if constexpr (requires { &Row::slab_locked_bytes; }) add_up(&Row::slab_locked_bytes);
  if constexpr (requires { &Row::growth_bytes_per_minute; }) add_up(&Row::growth_bytes_per_minute);
  if constexpr (requires { &Row::growth_bytes_per_step; }) {
    add_up(&Row::growth_bytes_per_step);
    for (const Row* row : rows)
      if (row->first_step && row->growth_bytes_per_step)
        merged.first_step = std::min(merged.first_step.value_or(UINT64_MAX), *row->first_step);
  }
  if constexpr (requires { &Row::uncertain; }) {
    for (const Row* row : rows) {
      merged.uncertain |= row->uncertain;
      merged.shared |= row->shared;
    }
    merged.shared_with = stacks_beside(rows);
  }
  if constexpr (requires { &Row::first_ns; }) {
    for (const Row* row : rows) {
      if (row->first_ns)
        merged.first_ns = std::min(merged.first_ns.value_or(UINT64_MAX), *row->first_ns);
      if (row->last_ns) merged.last_ns = std::max(merged.last_ns.value_or(0), *row->last_ns);
    }
  }
  if constexpr (requires { &Row::last_survivor_ns; }) {
    for (const Row* row : rows)
      if (row->last_survivor_ns)
        merged.last_survivor_ns =
            std::max(merged.last_survivor_ns.value_or(0), *row->last_survivor_ns);
  }
  if constexpr (requires { &Row::count_by_quarter; }) judge_growth(report, rows, merged);
}

// Merges rows whose stacks look alike in the text report and whose key(row) is equal. `rows`:
// pointers to rows, none of them null. `key`: function that returns a value with operator<. A
// merged row is a copy of the first of its rows, with the figures that merge_figures() sets.
// Returns the merged rows sorted by bytes, most first. Bytes that the driver keeps (kept_bytes), if
// rows have them, count too. `style`: look of the stacks in the text report. `done`: is called once
// for each of `rows`.
template <class Row, class Key>
std::vector<Row> merged_rows(
    const IndexedReport& report, const std::vector<const Row*>& rows, const Key& key,
    const Style& style, RowDone done = [] {}) {
  VisibleStacks stacks(report, style);
  std::vector<std::vector<const Row*>> parts;
  std::map<std::pair<std::size_t, decltype(key(*rows.front()))>, std::size_t> known;
  for (const Row* row : rows) {
    const auto part = known.try_emplace({stacks.number_of(row->stack), key(*row)}, parts.size());
    if (part.second) parts.emplace_back();
    parts[part.first->second].push_back(row);
    done();
  }
  std::vector<Row> merged;
  merged.reserve(parts.size());
  for (const auto& part : parts) {
    merged.push_back(*part.front());
    if (part.size() > 1) merge_figures(report, part, merged.back());
  }
  std::ranges::stable_sort(merged, std::greater(), [](const Row& row) {
    std::uint64_t bytes = row.bytes.value_or(0);
    if constexpr (requires { &Row::kept_bytes; }) bytes += row.kept_bytes.value_or(0);
    return bytes;
  });
  return merged;
}

// Returns the report's leaks, sorted by bytes, most first. Leaks whose stacks look alike in this
// style of the text report are merged if their kind, device, function and module are equal, too.
// A style with folded stacks has one further condition. Leaks whose memory a library keeps for
// itself (is_kept_by_library()) must be equal in all frames of their stacks. All others must agree
// in the library that asked for the memory and in whether they grow. Memory that the end of a
// context released, and suppressed leaks, are left out. `done`: is called for each of the report's
// leaks (rows of `leak_groups`) that is not left out.
std::vector<model::LeakGroup> merged_leaks(
    const IndexedReport&, const Style&, RowDone done = [] {});

// Returns the blocks that frameworks have handed out and not got back, in the form of leaks. The
// field `api` has the framework's name. Growing rows come first, then the largest ones. Rows whose
// stacks look alike in this style of the text report are merged if their framework, device and
// growth are equal, too.
std::vector<model::LeakGroup> merged_blocks(const IndexedReport&, const Style&);

}  // namespace cuwarden
