#include "reporters/tables/groups/suppressed_groups.hpp"

#include <string>

#include "reporters/files/plain_file.hpp"
#include "reporters/labels/report_suppressions.hpp"
#include "reporters/labels/suppressions.hpp"

namespace cuwarden {

std::vector<model::Suppression> suppress_groups(const ledger::Reader& reader,
                                                const CallFrames& frames,
                                                std::vector<LeakGroup>& groups) {
  const std::string path(setting_of(reader, "CUWARDEN_SUPPRESSIONS"));
  std::string text;
  if (path.empty() || !read_plain_file(path, most_suppression_bytes, text).empty()) return {};
  std::vector<std::string> errors;  // the process has named malformed lines at its start
  Suppressions rules(parse_suppressions(text, path, errors));
  std::vector<model::Suppression> rows = suppression_rows(rules.patterns());
  for (LeakGroup& leak : groups) {
    if (leak.released_by_context) continue;
    const auto rule = rules.rule_for(frames.named_frames(frames.known_stack(leak.group.stack)));
    leak.is_suppressed = rule.has_value();
    if (rule) count_suppressed(rows[*rule], leak.count, leak.bytes);
  }
  return rows;
}

}  // namespace cuwarden
