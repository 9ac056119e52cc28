#include "reporters/merging/leaks_of_merged.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "reporters/model/sums.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {
namespace {

model::LeakGroup group_of(const model::MergedLeak& leak) {
  model::LeakGroup group;
  group.fingerprint = leak.fingerprint;
  group.where = leak.where;
  group.stack = leak.stack;
  group.kind = leak.kind;
  group.api = leak.api;
  group.count = leak.count;
  group.bytes = leak.bytes;
  group.lost_count = leak.lost_count;
  group.lost_bytes = leak.lost_bytes;
  group.unknown_count = leak.unknown_count;
  group.unknown_bytes = leak.unknown_bytes;
  group.named_steps = leak.named_steps;
  // The allocations that are neither lost nor unknown have pointers.
  const auto rest = [](model::Figure all, model::Figure lost, model::Figure unknown) {
    const std::uint64_t others = lost.value_or(0) + unknown.value_or(0);
    return all.value_or(0) - std::min(others, all.value_or(0));
  };
  group.reachable_count = rest(leak.count, leak.lost_count, leak.unknown_count);
  group.reachable_bytes = rest(leak.bytes, leak.lost_bytes, leak.unknown_bytes);
  return group;
}

model::LeakGroup suppressed_group(const std::string& fingerprint) {
  model::LeakGroup group;
  group.fingerprint = fingerprint;
  group.suppressed = true;
  return group;
}

// True if the number of allocations of a leak is unknown.
bool has_unknown_counts(const model::MergedReport& merged) {
  const auto is_unknown = [](const auto& row) { return !row.count; };
  return std::ranges::any_of(merged.leaks, is_unknown) ||
         std::ranges::any_of(merged.leaks_of_processes, is_unknown);
}

// Returns a doubt if the processes have more leaks than the tables of leaks; otherwise null.
std::optional<std::string> unlisted_leaks(const model::MergedReport& merged) {
  // Tensors are listed in place of the allocations in which they lie, so that counts differ.
  if (!merged.suppressed_fingerprints.empty() ||
      std::ranges::count(merged.leaks, kind_name(Kind::framework_block), &model::MergedLeak::kind))
    return std::nullopt;
  std::uint64_t leaked = 0, in_leaks = 0, in_processes = 0;
  for (const model::MergedProcess& process : merged.processes) {
    // The doubt about a process explains the difference, and stands in its row.
    if (process.doubt) return std::nullopt;
    leaked += process.leak_count.value_or(0);
  }
  // An unknown number has a doubt of its own.
  if (has_unknown_counts(merged)) return std::nullopt;
  for (const model::MergedLeak& leak : merged.leaks) in_leaks += *leak.count;
  for (const model::LeakOfProcess& row : merged.leaks_of_processes) in_processes += *row.count;
  const std::uint64_t listed = std::min(in_leaks, in_processes);
  if (leaked <= listed) return std::nullopt;
  return "a merged report lists " + human_count(listed) + " of " + allocations(leaked) +
         " that leaked";
}

}  // namespace

std::vector<std::string> doubts_about(const model::MergedReport& merged) {
  std::vector<std::string> doubts = merged.tool.reasons;
  if (!merged.tool.complete && doubts.empty()) doubts.emplace_back("it does not say why");
  if (merged.processes.empty()) doubts.emplace_back("a merged report has no processes");
  if (auto unlisted = unlisted_leaks(merged)) doubts.push_back(std::move(*unlisted));
  if (has_unknown_counts(merged))
    doubts.emplace_back("a merged report does not know how many allocations leaked");
  return doubts;
}

model::Report leaks_of_merged(const model::MergedReport& merged) {
  model::Report report;
  report.tool = merged.tool;
  report.settings = merged.settings;
  report.stacks = merged.stacks;
  report.frames = merged.frames;
  report.modules = merged.modules;
  std::vector<std::string> doubts = doubts_about(merged);
  std::set<std::string> programs;
  bool is_searched = true;
  for (const model::MergedProcess& process : merged.processes) {
    if (process.doubt) doubts.push_back(process.report + ": " + *process.doubt);
    if (process.program) programs.emplace(file_name(*process.program));
    is_searched &= process.pointer_search || process.leak_count.value_or(0) == 0;
  }
  report.records = model::completeness(std::move(doubts));
  if (programs.size() == 1) report.process.program = *programs.begin();
  if (is_searched) report.pointer_search.emplace();
  report.leaks = {0, 0, 0, 0};
  for (const model::MergedLeak& leak : merged.leaks) {
    report.leak_groups.push_back(group_of(leak));
    model::add_to(report.leaks.bytes, leak.bytes);
    model::add_to(report.leaks.count, leak.count);
  }
  for (const std::string& fingerprint : merged.suppressed_fingerprints)
    report.leak_groups.push_back(suppressed_group(fingerprint));
  return report;
}

}  // namespace cuwarden
