// `cuwarden snapshot`: makes the report of a running process. The report is read from the ledger
// that the process writes in any case, so the process is not disturbed.
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "reporters/files/output.hpp"
#include "reporters/formats/formats.hpp"
#include "reporters/json/write_report.hpp"
#include "reporters/reports/report_file.hpp"
#include "reporters/tables/ledger_report.hpp"
#include "reporters/words/paths.hpp"
#include "tools/cuwarden/ledgers/ledger_search.hpp"
#include "tools/cuwarden/output/command_output.hpp"
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

}  // namespace

int snapshot_verb(const SnapshotVerb& verb) {
  const LiveLedger live = ledger_of(verb.pid);
  if (!live.file) {
    print_error(live.error);
    return 2;
  }
  const ledger::Reader& reader = live.file->reader();
  ReportOptions options;
  options.end_reason = ledger::EndReason::running;
  options.symbol_time = longest_symbol_time_afterwards;
  options.symbol_memory = most_symbol_memory_afterwards;
  if (verb.format != nullptr) {
    TextOptions text;
    text.colour = wants_colour(STDOUT_FILENO);
    text.columns = columns_for(STDOUT_FILENO);
    text.ascii = wants_ascii();
    print(STDOUT_FILENO,
          verb.format->write(IndexedReport(LedgerReport(reader, options).whole()), text));
    return 0;
  }
  if (verb.output == "-" || verb.output == "/dev/stdout") {
    const auto output = std::make_unique<Output>(STDOUT_FILENO);
    LedgerReport report(reader, options);
    write_report_json(report, *output);
    if (const int error = output->finish()) output_failed(error);
    return 0;
  }
  std::string path = verb.output.empty() ? "." : verb.output;
  struct stat status {};
  const bool is_there = stat(path.c_str(), &status) == 0;
  if (is_there && S_ISDIR(status.st_mode)) {
    path += (path.ends_with('/') ? "" : "/") + default_name(reader.process());
  } else if (is_there && !S_ISREG(status.st_mode)) {
    print_error(path + ": it is a device, a pipe or a socket; give the path of a file, or - for " +
                "standard output, with --output");
    return 2;
  }
  ReportFile report(path, "give a path that can be written with --output");
  if (!report.write(reader, options)) {
    print_error(report.error());
    return 2;
  }
  print_line(STDOUT_FILENO, "report: " + report.path());
  return 0;
}

}  // namespace cuwarden
