// The verbs of the command. Each returns the exit status: 0 for success, 1 if a check that was
// asked for failed, 2 for wrong usage or input. `run` returns the exit status of its program.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reporters/formats/formats.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// The command line of each verb, and the function that runs it and returns the exit status.
struct ReportVerb {
  std::vector<std::string> files;
  TextOptions text;
  const Format* format = &report_formats().front();  // of reports that are shown whole
  bool fail_on_leak = false;
  std::vector<std::string> symbol_folders;  // folders of debug files, which are found by build id
  bool redact = false;                      // write a redacted copy instead of showing the report
  std::string output;  // path of the copy; empty: beside the report; "-": standard output
};
int report_verb(const ReportVerb&);

struct RunVerb {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> settings;  // variable and value, for the shim
  std::optional<std::uint64_t> simulated_bytes;
};
int run_verb(const RunVerb&);

struct SnapshotVerb {
  pid_t pid = 0;
  std::string output;  // path; empty: the default name in the current folder; "-": standard output
};
int snapshot_verb(const SnapshotVerb&);

struct RecoverVerb {
  std::vector<std::string> locations;  // paths of folders or ledgers; empty: the usual folders
  // Longest time for one ledger of another user; null: usual_time_for_a_ledger.
  std::optional<std::chrono::nanoseconds> longest;
  // Path of the report, or of a folder for reports; empty: the paths chosen by the programs.
  std::string output;
};
int recover_verb(const RecoverVerb&);

struct TopVerb {
  pid_t pid = 0;  // 0: all processes
  bool once = false;
  bool json = false;  // print one JSON object
};
int top_verb(const TopVerb&);

int doctor_verb(const std::vector<std::string>& command);

}  // namespace cuwarden
