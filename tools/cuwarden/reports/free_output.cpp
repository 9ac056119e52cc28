#include "tools/cuwarden/reports/free_output.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "reporters/files/file_status.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/reports/report_folder.hpp"

namespace cuwarden {
namespace {

bool is_path(std::string_view word) { return !word.empty() && word != "-"; }

}  // namespace

bool is_output_free(const std::string& output, const std::vector<std::string>& inputs) {
  struct stat replaced {};
  if (!is_path(output) || stat(output.c_str(), &replaced) != 0 || !S_ISREG(replaced.st_mode))
    return true;
  const auto is_output = [&](const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && status.st_dev == replaced.st_dev &&
           status.st_ino == replaced.st_ino;
  };
  const auto has_output = [&](const std::string& input) {
    if (!is_path(input)) return false;
    if (!is_folder(input)) return is_output(input);
    const FolderContents contents = contents_of(input);
    return std::ranges::any_of(contents.reports, is_output) ||
           std::ranges::any_of(contents.ledgers, is_output);
  };
  if (std::ranges::none_of(inputs, has_output)) return true;
  print_error(output + ": the command reads this file; name another output");
  return false;
}

}  // namespace cuwarden
