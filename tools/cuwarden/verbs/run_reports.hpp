// Collects the reports of all processes of a `run` after its program has ended.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "tools/cuwarden/ledgers/recovery.hpp"
#include "tools/cuwarden/verbs/temporary_file.hpp"

namespace cuwarden {

struct RunReport {
  std::string path;
  // The report's text if it belongs to another user, read with that user's rights. Null if it can
  // be read from its path.
  std::optional<std::string> content;
};

struct RunReports {
  std::vector<RunReport> reports;
  bool said = false;      // true if an error line has said why a report is missing
  bool unwanted = false;  // true if CUWARDEN_REPORT_IF asked for no report of a process
};

// The list file of a run, and the folders that are searched for files missing from the list.
struct RunPaths {
  std::string list;  // path of the list, which all processes of the run have in a variable
  std::string report_folder = ".";  // folder of the path in CUWARDEN_REPORT
  std::vector<std::string> ledger_folders;
  std::time_t start = 0;  // start of the run; older files are not looked at
};

// Reads the list, and makes the reports of processes that died without one. A process that took
// another user's rights before its first CUDA call could not open the list. Its ledger or report is
// searched for in the usual folders.
RunReports reports_of_run(const TemporaryFile& list, const RunPaths&, const RecoveryRequest& child);

}  // namespace cuwarden
