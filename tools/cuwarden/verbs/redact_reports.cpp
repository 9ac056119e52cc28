#include "tools/cuwarden/verbs/redact_reports.hpp"

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "reporters/files/file_name_limits.hpp"
#include "reporters/files/output.hpp"
#include "reporters/model/redaction.hpp"
#include "reporters/words/paths.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/output/whole_file.hpp"
#include "tools/cuwarden/reports/given_reports.hpp"

namespace cuwarden {
namespace {

// Returns the path of the redacted copy: "ci.redacted.json" for "ci.json". `path`: path of the
// report. `name`: redacted name of the report's file.
std::string path_of_copy(const std::string& path, const std::string& name) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);  // empty without a slash
  const std::size_t ending = ending_of(name);
  return folder + fitting_name(name.substr(0, ending) + ".redacted" + name.substr(ending),
                               name_limit(folder));
}

// Writes JSON to standard output as it is: JSON escapes all control characters.
void print_whole(const std::string& text) {
  const auto output = std::make_unique<Output>(STDOUT_FILENO);
  output->write(text);
  if (const int error = output->finish()) output_failed(error);
}

// Writes the redacted copy to `path`, and sets `path` to that of the new file if it is another one.
// Shows a line of progress if that takes long. Returns an empty text, or an error line.
std::string write_copy(ReportCopy& copy, std::string& path) {
  const auto progress = [] { return ToldProgress("writing rows of the redacted copy"); };
  if (path != "-" && !is_stream(path)) return copy.write(path, progress());
  const std::string text = copy.text(progress());
  if (path == "-")
    print_whole(text);
  else if (const int error = write_whole_file(path, text))
    return line_about_unwritable(path, error, "--output");
  return {};
}

}  // namespace

int redact_reports(const ReportVerb& verb, ReportNames& names) {
  if (!is_standard_output(verb.output)) forbid_progress_beside(verb.output);
  int status = 0;
  for (const std::string& file : verb.files) {
    std::string error;
    auto copy = load_copy_with_progress(file, error);
    if (copy) {
      names.complete(copy->report(), names.paths_in(file));
      const std::string name =
          redact(copy->report(), file == "-" ? "report.json" : std::string(file_name(file)),
                 ToldProgress("redacting " + name_of_input(file)));
      std::string path = verb.output.empty() ? path_of_copy(file, name) : verb.output;
      error = write_copy(*copy, path);
      if (error.empty() && path != "-" && !is_stream(path))
        print_line(STDERR_FILENO, "report: " + path);
    }
    if (error.empty()) continue;
    print_error(error);
    status = 2;
  }
  return status;
}

}  // namespace cuwarden
