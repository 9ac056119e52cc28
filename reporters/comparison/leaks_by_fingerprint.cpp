#include "reporters/comparison/leaks_by_fingerprint.hpp"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include "reporters/model/named_steps.hpp"
#include "reporters/text/elements/leak_check.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {
namespace {

// True if the pattern matches all call stacks of the main thread of the report's program: that of
// main(), and that of the program's file.
bool is_of_program(const IndexedReport& report, const std::string& pattern) {
  const std::string program(file_name(report->process.program.value_or("")));
  return pattern == "^main$" || pattern == printable(program) + "$";
}

// Returns the figure less the parts, of which null ones count as 0; 0 if the parts are larger; null
// if the figure is.
model::Figure rest(model::Figure all, std::initializer_list<model::Figure> parts) {
  if (!all) return std::nullopt;
  std::uint64_t known = 0;
  for (const model::Figure part : parts) known += part.value_or(0);
  return *all - std::min(known, *all);
}

// Returns the leak to which the row is added. The leak's named steps are not summed up.
FingerprintedLeak& add_row(const IndexedReport& report, const LeakRow& row, const Style& style,
                           LeaksByFingerprint& leaks) {
  const auto [known, is_new] = leaks.try_emplace(printable(std::string(row.fingerprint)));
  FingerprintedLeak& leak = known->second;
  if (is_new) {
    leak.kind = printable(std::string(row.kind));
    leak.api = printable(std::string(row.api));
    CallingLocation calling = calling_location(report, row.stack);
    leak.is_pattern_of_program = is_of_program(report, calling.pattern);
    leak.pattern = std::move(calling.pattern);
    leak.caller = std::move(calling.caller);
    leak.where = std::move(calling.location);
    // Parts such as "build/../" are removed. Many build systems give the compiler paths that are
    // relative to the build folder.
    leak.file = std::filesystem::path(std::move(calling.file)).lexically_normal();
    leak.line = calling.line;
    add_stack(report, row.stack, most_compared_frames, style, leak.stack);
  }
  leak.count += row.count.value_or(0);
  leak.bytes += row.bytes.value_or(0);
  leak.lost_count += row.lost_count.value_or(0);
  leak.lost_bytes += row.lost_bytes.value_or(0);
  leak.unknown_count += row.unknown_count.value_or(0);
  leak.unknown_bytes += row.unknown_bytes.value_or(0);
  leak.named_steps.insert(leak.named_steps.end(), row.named_steps.begin(), row.named_steps.end());
  return leak;
}

}  // namespace

std::string suppression_lines(const LeaksByFingerprint& leaks) {
  struct Sum {
    std::uint64_t count = 0, bytes = 0;
    const FingerprintedLeak* first = nullptr;
  };
  std::map<std::string, Sum> sums;
  for (const auto& [fingerprint, leak] : leaks) {
    // Suppressions do not apply to tensors.
    if (leak.pattern.empty() || leak.kind == kind_name(Kind::framework_block)) continue;
    Sum& sum = sums[leak.pattern];
    sum.count += leak.count;
    sum.bytes += leak.bytes;
    if (sum.first == nullptr) sum.first = &leak;
  }
  std::string text;
  for (const auto& [pattern, sum] : sums) {
    text +=
        "# " + sum.first->caller + ": " + human_bytes(sum.bytes) + " in " + allocations(sum.count);
    text += sum.first->is_pattern_of_program
                ? "; the line would suppress all leaks of the program\n# "
                : "\n";
    text += "leak:" + pattern + "\n";
  }
  return text;
}

void add_suppressed_of(const IndexedReport& report, std::set<std::string>& fingerprints) {
  for (const model::LeakGroup& group : report->leak_groups)
    if (group.suppressed && group.fingerprint) fingerprints.insert(printable(*group.fingerprint));
}

void each_leak(const IndexedReport& report, const std::string& module,
               FunctionRef<void(const LeakRow&)> visit) {
  const auto give = [&](const auto& row, std::string_view kind, std::string_view api) {
    if (!row.fingerprint || row.count == 0) return;
    LeakRow leak{.fingerprint = *row.fingerprint,
                 .kind = kind,
                 .api = api,
                 .stack = row.stack,
                 .count = row.count,
                 .bytes = row.bytes};
    if constexpr (requires { row.lost_count; }) {
      leak.lost_count = row.lost_count.value_or(0);
      leak.lost_bytes = row.lost_bytes.value_or(0);
      leak.unknown_count =
          rest(row.count, {row.lost_count, row.interior_count, row.reachable_count});
      leak.unknown_bytes =
          rest(row.bytes, {row.lost_bytes, row.interior_bytes, row.reachable_bytes});
    }
    if constexpr (requires { row.named_steps; }) leak.named_steps = row.named_steps;
    visit(leak);
  };
  const bool has_tensors = !report->framework_sites.empty() && module.empty();
  for (const model::LeakGroup& group : report->leak_groups) {
    if (group.released_by || group.suppressed) continue;
    if (!module.empty() && !is_in_module(report, group, module)) continue;
    if (has_tensors && holds_listed_blocks(report, group)) continue;
    give(group, group.kind, group.api ? std::string_view(*group.api) : std::string_view());
  }
  if (!has_tensors) return;
  for (const model::FrameworkSite& site : report->framework_sites)
    give(site, kind_name(Kind::framework_block), site.framework);
}

void add_leaks_of(const IndexedReport& report, const std::string& module, const Style& style,
                  LeaksByFingerprint& leaks,
                  FunctionRef<void(std::size_t rows, std::size_t all)> told) {
  std::set<FingerprintedLeak*> of_report;
  const std::size_t all = report->leak_groups.size() + report->framework_sites.size();
  std::size_t rows = 0;
  each_leak(report, module, [&](const LeakRow& row) {
    constexpr std::size_t pause = 1024;
    of_report.insert(&add_row(report, row, style, leaks));
    if (++rows % pause == 0) told(rows, all);
  });
  // Summed up once, since a leak may have many rows in the report.
  for (FingerprintedLeak* const leak : of_report) model::sum_up_named_steps(leak->named_steps);
}

}  // namespace cuwarden
