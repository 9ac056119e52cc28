// The reports of the processes that a `run` has started, once its program has ended.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "tools/cuwarden/recovery.hpp"
#include "tools/cuwarden/temporary_file.hpp"

namespace cuwarden {

struct RunReport {
  std::string path;
  // Its bytes where it is another user's, read with that user's rights; null: read the path.
  std::optional<std::string> content;
};

struct RunReports {
  std::vector<RunReport> reports;
  bool said = false;      // an error line has told why one is missing
  bool unwanted = false;  // a process had nothing that CUWARDEN_REPORT_IF asks for
};

// Where the processes of a run leave what they have not told of.
struct RunPlaces {
  std::string list;  // path of the list; all of the run's processes had it in a variable
  std::string report_folder = ".";  // that of CUWARDEN_REPORT
  std::vector<std::string> ledger_folders;
  std::time_t start = 0;  // older files are not looked at
};

// Reads the list, and makes reports of the ledgers in it whose processes have died. A process that
// took another user's rights before its first CUDA call could not open the list: its ledger or
// report is searched for where it lies usually.
RunReports reports_of_run(const TemporaryFile& list, const RunPlaces&,
                          const RecoveryRequest& child);

}  // namespace cuwarden
