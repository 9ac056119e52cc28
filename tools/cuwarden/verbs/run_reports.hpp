// Collects the reports of all processes that a program had which `cuwarden run` ran, after the
// program has ended.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "tools/cuwarden/ledgers/recovery.hpp"
#include "tools/cuwarden/verbs/temporary_file.hpp"

namespace cuwarden {

// A report that a process of the program wrote, or that was made from its ledger.
struct RunReport {
  std::string path;  // absolute path of the report
  // The report's text, if the report belongs to another user: it was read with that user's rights,
  // since the path may lead anywhere. Null otherwise: then the report is to be read from `path`.
  std::optional<std::string> content;
};

// The reports of all processes of a program that `cuwarden run` ran, and facts about missing ones.
struct RunReports {
  std::vector<RunReport> reports;
  // True if the user needs no message about reports: an error line has said why one is missing, or
  // the program was another `cuwarden run`, which has shown its own reports.
  bool said = false;
  bool unwanted = false;  // true if, by CUWARDEN_REPORT_IF, a process was to have no report
};

// Paths of one `cuwarden run`: its list file, in which processes enter their ledgers and reports,
// and folders that are searched for ledgers and reports missing from the list.
struct RunPaths {
  // Path of the list file; all processes have it in the environment variable CUWARDEN_REPORT_LIST.
  std::string list;
  std::string report_folder = ".";          // folder of the path in CUWARDEN_REPORT
  std::vector<std::string> ledger_folders;  // folders in which ledgers may lie
  std::time_t start = 0;  // start of the run, in seconds since 1970; older files are not looked at
};

// Returns the reports that the list file names, and makes the reports of processes that died
// without one, from the ledgers that the list names. If the list has neither, or if this process is
// root, also searches the folders of RunPaths. (A process that took another user's rights before
// its first CUDA call could not open the list.) `child`: options for making reports; its
// `waited_for` and `signal` are those of the program's first process.
RunReports reports_of_run(const TemporaryFile& list, const RunPaths&, const RecoveryRequest& child);

}  // namespace cuwarden
