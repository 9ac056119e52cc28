#include "tools/cuwarden/reports/given_suppressions.hpp"

#include <algorithm>

#include "reporters/files/plain_file.hpp"
#include "reporters/labels/report_suppressions.hpp"
#include "reporters/labels/suppressions.hpp"
#include "tools/cuwarden/output/command_output.hpp"

namespace cuwarden {

bool read_suppressions(const std::string& path, std::vector<std::string>& patterns) {
  std::string text;
  std::vector<std::string> errors;
  // The process that is to read the file opens it anew, so that a pipe would not do.
  const std::string error = read_plain_file(path, most_suppression_bytes, text);
  if (error.empty())
    patterns = parse_suppressions(text, path, errors);
  else
    errors.push_back(path + ": " + error + " (--suppressions)");
  for (const std::string& line : errors) print_error(line);
  return errors.empty();
}

void suppress_leaks(model::Report& report, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return;
  for (const model::Suppression& row : suppression_rows(patterns))
    if (std::ranges::find(report.suppressions, row.pattern, &model::Suppression::pattern) ==
        report.suppressions.end())
      report.suppressions.push_back(row);
  apply_suppressions(report);
}

}  // namespace cuwarden
