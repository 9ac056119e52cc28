// `cuwarden snapshot`: makes the report of a running process. The report is read from the ledger
// that the process writes in any case, so the process is not disturbed.
#include <unistd.h>

#include <memory>
#include <string>
#include <variant>

#include "reporters/files/file_status.hpp"
#include "reporters/files/output.hpp"
#include "reporters/formats/formats.hpp"
#include "reporters/json/write_report.hpp"
#include "reporters/reports/report_file.hpp"
#include "reporters/tables/ledger_report.hpp"
#include "reporters/words/paths.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "tools/cuwarden/ledgers/ledger_search.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/output/whole_file.hpp"
#include "tools/cuwarden/reports/binary_output.hpp"
#include "tools/cuwarden/reports/free_output.hpp"
#include "tools/cuwarden/reports/report_folder.hpp"
#include "tools/cuwarden/verbs/page_beside.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

// Returns the file name of the report that the process will write, for use in the current folder.
// The process's own folder may be in another container, or may not be writable here.
std::string default_name(const ledger::ProcessView& process) {
  constexpr std::string_view ending = ".json";
  std::string name(file_name(process.report_path));
  if (name.ends_with(ending)) name.erase(name.size() - ending.size());
  if (name.empty()) name = "cuwarden-" + std::to_string(process.pid);
  return name + ".snapshot.json";
}

// Writes something to an output.
using Write = FunctionRef<void(Output&)>;

int to_standard_output(Write write) {
  const auto output = std::make_unique<Output>(STDOUT_FILENO);
  write(*output);
  if (const int error = output->finish()) output_failed(error);
  return 0;
}

// Writes the file at the path, or into the pipe or device there. Returns the exit status.
int to_file(const std::string& path, Write write) {
  WholeFile whole(path);
  int error = whole.error();
  if (error == 0) {
    write(whole.output());
    error = whole.finish();
  }
  if (error == 0) return 0;
  print_error(line_about_unwritable(path, error, "--output"));
  return 2;
}

// Writes the file to the output of the verb, unless that is `ledgers`: the ledger of which the file
// tells, or the folder with the ledgers.
int write_exported(const SnapshotVerb& verb, CommonFile& file, const std::string& ledgers) {
  if (!is_output_free(verb.output, {ledgers})) return 2;
  // A line of progress would be mixed into what is written to a terminal.
  if (is_standard_output(verb.output))
    return to_standard_output([&](Output& output) { file.write(output); });
  return to_file(verb.output, [&](Output& output) { write_showing_progress(file, output); });
}

// Returns the options of the report of a running process. The progress of making the report is
// shown by `progress`, which must live as long as the options.
ReportOptions options_of_snapshots(StagedProgress& progress) {
  ReportOptions options;
  options.told = [&](const char* what, std::size_t done, std::size_t all) {
    progress.done(what, done, all);
  };
  options.end_reason = ledger::EndReason::running;
  options.symbol_time = longest_symbol_time_afterwards;
  options.symbol_memory = most_symbol_memory_afterwards;
  return options;
}

IndexedReport report_of(const LedgerFile& file) {
  StagedProgress progress;
  return IndexedReport(LedgerReport(file.reader(), options_of_snapshots(progress)).whole());
}

// Writes a file about all running processes whose ledgers lie in the folder verb.ledger.
int snapshot_of_folder(const SnapshotVerb& verb, CommonFile& file) {
  int error = 0;
  bool failed = false, any = false;
  for (const std::string& path : ledgers_in(verb.ledger, error)) {
    const LiveLedger live = live_ledger_at(path);
    if (live.file) {
      add_showing_progress(file, report_of(*live.file), path);
      any = true;
    } else if (!live.has_none) {
      print_error(live.error);
      failed = true;
    }
  }
  if (!any && !failed) {
    print_error(error != 0 ? line_about_unreadable(verb.ledger, error)
                           : verb.ledger + ": no running process has its ledger in there");
    return 2;
  }
  const int status = any ? write_exported(verb, file, verb.ledger) : 2;
  return failed ? 2 : status;
}

}  // namespace

const ExportFormat* snapshot_export_format(std::string_view name) {
  const ExportFormat* const format = export_format(name);
  const bool is_of_memory = format != nullptr && std::holds_alternative<StartFile*>(format->write);
  return is_of_memory ? format : nullptr;
}

int snapshot_verb(const SnapshotVerb& verb) {
  if (verb.format != nullptr && !verb.output.empty()) {
    print_error("--output has no effect on --format " + std::string(verb.format->name) +
                ", which is shown on standard output; leave it out");
    return 2;
  }
  if (!is_standard_output(verb.output)) forbid_progress_beside(verb.output);
  std::unique_ptr<CommonFile> exported;
  if (verb.exported != nullptr) {
    if (verb.exported == export_format("html") && !is_page_there()) return 2;
    exported = std::get<StartFile*>(verb.exported->write)();
    if (is_standard_output(verb.output) && !may_be_printed(*exported, *verb.exported)) return 2;
  }
  if (!verb.ledger.empty() && is_folder(verb.ledger)) {
    if (exported != nullptr) return snapshot_of_folder(verb, *exported);
    print_error(verb.ledger +
                ": it is a folder, of which only a --format of other programs, such "
                "as prometheus, can be written; give the path of a ledger in it");
    return 2;
  }
  const LiveLedger live = verb.ledger.empty() ? ledger_of(verb.pid) : live_ledger_at(verb.ledger);
  if (!live.file) {
    print_error(live.error);
    return 2;
  }
  const ledger::Reader& reader = live.file->reader();
  if (verb.format != nullptr) {
    TextOptions text;
    text.colour = wants_colour(STDOUT_FILENO);
    text.columns = columns_for(STDOUT_FILENO);
    text.ascii = wants_ascii();
    print(STDOUT_FILENO,
          verb.format->write(report_of(*live.file), text,
                             ToldProgress("making the text of " + live.file->path())));
    return 0;
  }
  if (exported != nullptr) {
    add_showing_progress(*exported, report_of(*live.file), live.file->path());
    return write_exported(verb, *exported, live.file->path());
  }
  StagedProgress progress;
  const ReportOptions options = options_of_snapshots(progress);
  const auto write_json = [&](Output& output) {
    LedgerReport report(reader, options);
    // The output may go to the terminal that shows the progress.
    hide_progress();
    write_report_json(report, output);
  };
  if (verb.output == "-" || verb.output == "/dev/stdout") return to_standard_output(write_json);
  std::string path = verb.output.empty() ? "." : verb.output;
  if (is_stream(path)) return to_file(path, write_json);
  if (is_folder(path)) path += (path.ends_with('/') ? "" : "/") + default_name(reader.process());
  ReportFile report(path, "give a path that can be written with --output");
  if (!report.write(reader, options)) {
    print_error(report.error());
    return 2;
  }
  print_line(STDOUT_FILENO, "report: " + report.path());
  return 0;
}

}  // namespace cuwarden
