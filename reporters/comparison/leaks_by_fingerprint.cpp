#include "reporters/comparison/leaks_by_fingerprint.hpp"

#include <algorithm>

#include "reporters/labels/fingerprint.hpp"
#include "reporters/text/leak_check.hpp"
#include "reporters/text/text_stacks.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {
namespace {

// Most lines for the frames of one stack; `cuwarden report` shows more.
constexpr std::size_t most_lines = 12;

// Adds a row of `leak_groups` or `framework_sites` of the report.
template <class Row>
void add_row(const IndexedReport& report, const Row& row, const std::string& kind,
             const std::string& api, const Style& style, LeaksByFingerprint& leaks) {
  if (!row.fingerprint) return;
  const auto [known, is_new] = leaks.try_emplace(printable(*row.fingerprint));
  FingerprintedLeak& leak = known->second;
  if (is_new) {
    leak.kind = printable(kind);
    leak.api = printable(api);
    const CallingLocation calling = calling_location(report, row.stack);
    leak.caller = calling.caller;
    leak.where = calling.location;
    leak.file = calling.file;
    leak.line = calling.line;
    leak.pattern = calling.pattern;
    add_stack(report, row.stack, most_lines, style, leak.stack);
  }
  leak.count += row.count.value_or(0);
  leak.bytes += row.bytes.value_or(0);
}

}  // namespace

std::string suppression_lines(const LeaksByFingerprint& leaks) {
  struct Sum {
    std::uint64_t count = 0, bytes = 0;
    std::string caller;
    bool is_program = false;
  };
  std::map<std::string, Sum> sums;
  for (const auto& [fingerprint, leak] : leaks) {
    // Suppressions do not apply to tensors.
    if (leak.pattern.empty() || leak.kind == kind_name(Kind::framework_block)) continue;
    Sum& sum = sums[leak.pattern];
    sum.count += leak.count;
    sum.bytes += leak.bytes;
    sum.caller = leak.caller;
    // Nothing but the file of the program is known.
    sum.is_program = leak.pattern.ends_with('$') && !leak.pattern.starts_with('^') &&
                     leak.pattern.find(".so") == leak.pattern.npos;
  }
  std::string text;
  for (const auto& [pattern, sum] : sums) {
    text += "# " + sum.caller + ": " + human_bytes(sum.bytes) + " in " + allocations(sum.count);
    // Every call stack of the main thread has this function.
    text += pattern == "^main$" || sum.is_program
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

void add_leaks_of(const IndexedReport& report, const std::string& module, const Style& style,
                  LeaksByFingerprint& leaks) {
  const bool has_tensors = !report->framework_sites.empty() && module.empty();
  for (const model::LeakGroup& group : report->leak_groups) {
    if (group.released_by || group.suppressed || group.count.value_or(0) == 0) continue;
    if (!module.empty() && !is_in_module(report, group, module)) continue;
    if (has_tensors && holds_listed_blocks(report, group)) continue;
    add_row(report, group, group.kind, group.api.value_or(""), style, leaks);
  }
  if (!has_tensors) return;
  for (const model::FrameworkSite& site : report->framework_sites)
    if (site.count.value_or(0) != 0)
      add_row(report, site, std::string(kind_name(Kind::framework_block)), site.framework, style,
              leaks);
}

}  // namespace cuwarden
