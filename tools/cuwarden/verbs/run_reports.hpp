// Collects the reports of all processes of a program that `cuwarden run` has run, after the program
// has ended.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "tools/cuwarden/ledgers/recovery.hpp"
#include "tools/cuwarden/verbs/temporary_file.hpp"

namespace cuwarden {

// The report of one process of a program that `cuwarden run` has run. The process wrote it, or it
// was made from the process's ledger.
struct RunReport {
  std::string path;  // path of the report's file; relative to the current folder unless absolute
  // The report's text, if the report belongs to another user: the text was read with that user's
  // rights, since the path may lead anywhere. Empty if it could not be read. Null if the caller may
  // read the report from `path`.
  std::optional<std::string> content;
};

// The reports of all processes of a program that `cuwarden run` ran, and facts about missing ones.
struct RunReports {
  // Reports that the program's processes wrote, or that were made from their ledgers.
  std::vector<RunReport> reports;
  // True if the user needs no message that reports are missing: an error line was printed, or the
  // program was another `cuwarden run`, which has shown its own reports.
  bool said = false;
  // True if a process has no report because it asks for none (CUWARDEN_REPORT_IF, or /dev/null as
  // CUWARDEN_REPORT).
  bool unwanted = false;
};

// Paths of one `cuwarden run`: its list file, in which processes enter their ledgers and reports,
// and folders that are searched for ledgers and reports missing from the list.
struct RunPaths {
  // Path of the list file, in which the processes of the program enter their ledgers and reports.
  // All of them have this path in the environment variable CUWARDEN_REPORT_LIST.
  std::string list;
  std::string report_folder = ".";  // folder in which the processes write reports (CUWARDEN_REPORT)
  std::vector<std::string> ledger_folders;  // folders in which the processes may have ledgers
  // Start of `cuwarden run`, in seconds since 1970. The search for ledgers and reports ignores
  // files that were last changed before this start.
  std::time_t start = 0;
};

// Returns the reports of all processes of a program that has ended. Reads paths of reports and
// ledgers from `list`, the list file, and makes the reports of processes that died without one,
// from their ledgers. Prints an error line for each ledger that is in use or damaged, or could not
// be recovered. If no report was found so, or if this process is root, also searches the folders of
// RunPaths. (A process that took another user's rights before its first CUDA call could not open
// the list.) `child`: options for making reports, with the pid (`waited_for`) and the deadly signal
// of the program's first process.
RunReports reports_of_run(const TemporaryFile& list, const RunPaths&, const RecoveryRequest& child);

}  // namespace cuwarden
