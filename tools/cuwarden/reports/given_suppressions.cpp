#include "tools/cuwarden/reports/given_suppressions.hpp"

#include "reporters/files/given_file.hpp"
#include "reporters/labels/suppressions.hpp"
#include "tools/cuwarden/output/command_output.hpp"

namespace cuwarden {

bool read_suppressions(const std::string& path, std::vector<std::string>& patterns) {
  std::string text;
  std::vector<std::string> errors;
  const std::string error = read_text_file(path, most_suppression_bytes, text);
  if (error.empty())
    patterns = parse_suppressions(text, path, errors);
  else
    errors.push_back(path + ": " + error + " (--suppressions)");
  for (const std::string& line : errors) print_error(line);
  return errors.empty();
}

}  // namespace cuwarden
