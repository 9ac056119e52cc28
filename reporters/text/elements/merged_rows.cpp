#include "reporters/text/elements/merged_rows.hpp"

#include <cstdint>
#include <set>
#include <tuple>

#include "reporters/model/growth.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/elements/text_stacks.hpp"
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

std::size_t VisibleStacks::number_of(model::MaybeId id) {
  const auto [known, is_new] = stacks_by_id_.try_emplace(id, 0u);
  if (!is_new) return known->second;
  std::vector<std::size_t> lines;
  if (const model::Stack* stack = report_.stack(id)) {
    for (const model::Id frame : stack->frames) {
      const auto [line, is_new_frame] = lines_by_frame_.try_emplace(frame, 0u);
      if (is_new_frame)
        line->second =
            lines_.try_emplace(visible_frame(report_, frame), lines_.size()).first->second;
      lines.push_back(line->second);
    }
    lines.push_back(stack->truncated ? 1 : 0);
  }
  known->second = stacks_.try_emplace(std::move(lines), stacks_.size()).first->second;
  return known->second;
}

std::vector<model::LeakGroup> merged_leaks(const IndexedReport& report, RowDone done) {
  std::vector<const model::LeakGroup*> leaks;
  for (const model::LeakGroup& group : report->leak_groups)
    if (!group.released_by && !group.suppressed) leaks.push_back(&group);
  return merged_rows(
      report, leaks,
      [](const model::LeakGroup& group) {
        return std::tuple(group.kind, group.device, group.api, group.module);
      },
      done);
}

std::vector<model::LeakGroup> merged_blocks(const IndexedReport& report) {
  std::vector<const model::FrameworkSite*> sites;
  for (const model::FrameworkSite& site : report->framework_sites) sites.push_back(&site);
  const auto merged = merged_rows(report, sites, [](const model::FrameworkSite& site) {
    return std::tuple(site.framework, site.device, site.growth);
  });
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
