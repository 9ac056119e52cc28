#include "reporters/text/elements/merged_rows.hpp"

#include <cstdint>
#include <set>
#include <tuple>

#include "reporters/labels/library_memory.hpp"
#include "reporters/model/growth.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {
namespace {

void add_births(const model::LeakGroup& row, Growth& all) {
  const std::uint64_t count = row.count.value_or(0), last = row.last_ns.value_or(0);
  if (count == 0) return;
  const std::uint64_t bytes = row.bytes.value_or(0) / count;
  const Growth own{.first_ns = row.first_ns.value_or(0), .end_ns = all.end_ns};
  if (!row.count_by_quarter ||
      !std::ranges::all_of(*row.count_by_quarter, &model::Figure::has_value)) {
    // An old report lacks the field.
    all.add(own.first_ns, bytes);
    if (count > 1) all.add(last, bytes, count - 1);
    return;
  }
  // If a quarter has several allocations, its middle stands for all of their times.
  for (std::size_t quarter = 0; quarter < 4; ++quarter) {
    const std::uint64_t births = *(*row.count_by_quarter)[quarter];
    const std::uint64_t middle = own.first_ns + quarter * own.quarter_ns() + own.quarter_ns() / 2;
    if (births > 0)
      all.add(count == 1 ? own.first_ns : std::min(middle, std::max(last, own.first_ns)), bytes,
              births);
  }
}

// Leaks that libraries keep for themselves.
struct KeptRows {
  std::set<const model::LeakGroup*> rows;  // rows of the report
  std::vector<model::LeakGroup> merged;    // `rows`, merged if all frames of their stacks are equal
};

// Returns those of `leaks` that libraries keep for themselves. A library is known by few
// allocations of a call stack, so that rows count alone whose stacks only look alike. `key`: rows
// are merged only if their keys are equal.
template <class Key>
KeptRows kept_by_libraries(const IndexedReport& report,
                           const std::vector<const model::LeakGroup*>& leaks, const Key& key) {
  std::vector<const model::LeakGroup*> of_libraries;
  for (const model::LeakGroup* const group : leaks)
    if (is_kept_by_library(memory_by_asker(report, *group).use)) of_libraries.push_back(group);
  const Style all_frames(false, true);
  KeptRows kept;
  kept.merged = merged_rows(report, of_libraries, key, all_frames);
  std::erase_if(kept.merged, [&](const model::LeakGroup& row) {
    return !is_kept_by_library(library_memory(report, row).use);
  });
  VisibleStacks stacks(report, all_frames);
  std::set<std::pair<std::size_t, decltype(key(*leaks.front()))>> keys;
  for (const model::LeakGroup& row : kept.merged)
    keys.emplace(stacks.number_of(row.stack), key(row));
  for (const model::LeakGroup* const row : of_libraries)
    if (keys.contains({stacks.number_of(row->stack), key(*row)})) kept.rows.insert(row);
  return kept;
}

}  // namespace

std::vector<model::Id> stacks_beside(const std::vector<const model::ImplicitGroup*>& rows) {
  std::set<model::Id> stacks;
  for (const model::ImplicitGroup* row : rows)
    stacks.insert(row->shared_with.begin(), row->shared_with.end());
  for (const model::ImplicitGroup* row : rows)
    if (row->stack) stacks.erase(*row->stack);
  return {stacks.begin(), stacks.end()};
}

void judge_growth(const IndexedReport& report, const std::vector<const model::LeakGroup*>& rows,
                  model::LeakGroup& merged) {
  if (std::ranges::any_of(rows, [](const auto* row) { return row->growth == "growing"; })) {
    merged.growth = "growing";
    return;
  }
  if (std::ranges::any_of(rows, [](const auto* row) { return row->first_step.has_value(); }))
    return;
  Growth all{.first_ns = merged.first_ns.value_or(0),
             .end_ns = report->process.end_ns.value_or(0),
             .has_quarters_only = true};
  for (const model::LeakGroup* row : rows) add_births(*row, all);
  if (!all.growing()) return;
  merged.growth = all.name();
  merged.growth_bytes_per_minute = all.bytes_per_minute();
}

std::vector<model::LeakGroup> merged_leaks(const IndexedReport& report, const Style& style,
                                           RowDone done) {
  const auto key = [](const model::LeakGroup& group) {
    return std::tuple(group.kind, group.device, group.api, group.module);
  };
  std::vector<const model::LeakGroup*> leaks;
  for (const model::LeakGroup& group : report->leak_groups)
    if (!group.released_by && !group.suppressed) leaks.push_back(&group);
  if (style.shows_full_stacks()) return merged_rows(report, leaks, key, style, done);
  const KeptRows kept = kept_by_libraries(report, leaks, key);
  std::erase_if(leaks, [&](const model::LeakGroup* group) { return kept.rows.contains(group); });
  std::vector<model::LeakGroup> merged = merged_rows(
      report, leaks,
      [&](const model::LeakGroup& group) {
        const LibraryMemory asked = memory_by_asker(report, group);
        // One call of a library may grow where another has made all of its memory.
        return std::tuple_cat(key(group),
                              std::tuple(asked.use, asked.library, group.growth == "growing"));
      },
      style, done);
  for ([[maybe_unused]] const model::LeakGroup* const row : kept.rows) done();
  merged.insert(merged.end(), kept.merged.begin(), kept.merged.end());
  std::ranges::stable_sort(merged, std::greater(),
                           [](const model::LeakGroup& row) { return row.bytes.value_or(0); });
  return merged;
}

std::vector<model::LeakGroup> merged_blocks(const IndexedReport& report, const Style& style) {
  std::vector<const model::FrameworkSite*> sites;
  for (const model::FrameworkSite& site : report->framework_sites) sites.push_back(&site);
  const auto merged = merged_rows(
      report, sites,
      [](const model::FrameworkSite& site) {
        return std::tuple(site.framework, site.device, site.growth);
      },
      style);
  std::vector<model::LeakGroup> blocks;
  for (const model::FrameworkSite& site : merged) {
    model::LeakGroup block;
    block.where = site.where;
    block.stack = site.stack;
    block.kind = kind_name(Kind::framework_block);
    block.api = site.framework;
    block.device = site.device;
    block.count = site.count;
    block.bytes = site.bytes;
    block.first_ns = site.first_ns;
    block.last_ns = site.last_ns;
    block.allocations = site.allocations;
    block.growth = site.growth;
    block.survivors = site.survivors;
    block.last_survivor_ns = site.last_survivor_ns;
    block.first_step = site.first_step;
    block.growth_bytes_per_step = site.growth_bytes_per_step;
    block.growth_bytes_per_minute = site.growth_bytes_per_minute;
    blocks.push_back(std::move(block));
  }
  std::ranges::stable_sort(blocks, std::greater(),
                           [](const model::LeakGroup& block) { return block.growth == "growing"; });
  return blocks;
}

}  // namespace cuwarden
