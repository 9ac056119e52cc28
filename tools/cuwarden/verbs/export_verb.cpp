// `cuwarden export`: writes reports in a format of other programs.
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "reporters/exports/exports.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/output/whole_file.hpp"
#include "tools/cuwarden/reports/binary_output.hpp"
#include "tools/cuwarden/reports/free_output.hpp"
#include "tools/cuwarden/reports/given_reports.hpp"
#include "tools/cuwarden/reports/given_suppressions.hpp"
#include "tools/cuwarden/reports/leak_checks.hpp"
#include "tools/cuwarden/verbs/page_beside.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

int cannot_write(const ExportVerb& verb, int error) {
  print_error(line_about_unwritable(verb.output, error, "--output"));
  return 2;
}

// Writes the sums of the leaks of all reports.
int export_leaks(const ExportVerb& verb, WriteLeaks& write,
                 const std::vector<std::string>& patterns) {
  ReportNames names(verb.symbol_folders);
  ExportedLeaks exported;
  if (!verb.baseline.empty()) {
    auto known = read_baseline(verb.baseline);
    if (!known) return 2;
    exported.known = std::move(*known);
  }
  // Jobs of GitHub have the folder of the repository here.
  if (const char* const folder = std::getenv("GITHUB_WORKSPACE")) exported.repository = folder;
  const OptionsForReports options{.suppressions = !verb.suppressions.empty(),
                                  .symbols = !verb.symbol_folders.empty()};
  const GivenReports given =
      each_given_report(verb.files, names, patterns, options,
                        [&](const std::string& path, const IndexedReport& report) {
                          add_leaks_of(path, report, "", Style(false), exported.leaks);
                        });
  // Leaks of a part of the reports would look like the leaks of all.
  if (given.failed || !given.ledgers.empty()) return 2;
  const std::string text = write(exported);
  if (verb.is_to_standard_output()) {
    print(STDOUT_FILENO, text);
  } else if (const int error = write_whole_file(verb.output, text)) {
    return cannot_write(verb, error);
  }
  return 0;
}

// Takes a report that was read, and the path of its file.
using Take = std::function<void(const IndexedReport&, const std::string& path, Output&)>;

// Gives each report to `take` when it was read, also if others cannot be read, and then calls
// `end`. Both write to the output of the verb. Without any report nothing is written.
int export_reports(const ExportVerb& verb, const std::vector<std::string>& patterns,
                   const Take& take, const std::function<void(Output&)>& end) {
  std::optional<WholeFile> file;
  if (!verb.is_to_standard_output()) {
    file.emplace(verb.output);
    if (file->error() != 0) return cannot_write(verb, file->error());
  }
  if (!file) forbid_progress();
  const auto standard_output = std::make_unique<Output>(STDOUT_FILENO);
  Output& output = file ? file->output() : *standard_output;
  ReportNames names(verb.symbol_folders);
  const GivenReports given = each_given_report(
      verb.files, names, patterns, {.tables = true},
      [&](const std::string& path, const IndexedReport& report) { take(report, path, output); },
      [&] { return output.error() == 0; });
  // A file that is there is worth more than one about nothing.
  if (given.count == 0) return 2;
  end(output);
  const int error = file ? file->finish() : output.finish();
  if (error != 0 && file) return cannot_write(verb, error);
  if (error != 0) output_failed(error);
  return given.failed || !given.ledgers.empty() ? 2 : 0;
}

}  // namespace

int export_verb(const ExportVerb& verb) {
  if (!verb.is_to_standard_output()) forbid_progress_beside(verb.output);
  std::vector<std::string> inputs = verb.files;
  inputs.insert(inputs.end(), {verb.suppressions, verb.baseline});
  if (!is_output_free(verb.output, inputs)) return 2;
  std::vector<std::string> patterns;
  if (!verb.suppressions.empty() && !read_suppressions(verb.suppressions, patterns)) return 2;
  if (WriteLeaks* const* const write = std::get_if<WriteLeaks*>(&verb.format->write))
    return export_leaks(verb, **write, patterns);
  if (!verb.baseline.empty()) {
    print_error("--baseline has no effect on --format " + std::string(verb.format->name) +
                ", which has the leaks of each report; leave it out");
    return 2;
  }
  if (WriteReport* const* const write = std::get_if<WriteReport*>(&verb.format->write))
    return export_reports(
        verb, patterns,
        [&](const IndexedReport& report, const std::string& path, Output& output) {
          (*write)(report, path, output, ToldProgress("writing rows of " + path));
        },
        [](Output&) {});
  // The page is the one format that a build may lack.
  if (verb.format == export_format("html") && !is_page_there()) return 2;
  const std::unique_ptr<CommonFile> common = std::get<StartFile*>(verb.format->write)();
  if (verb.is_to_standard_output() && !may_be_printed(*common, *verb.format)) return 2;
  return export_reports(
      verb, patterns,
      [&](const IndexedReport& report, const std::string& path, Output&) {
        add_showing_progress(*common, report, path);
      },
      [&](Output& output) { write_showing_progress(*common, output); });
}

}  // namespace cuwarden
