// The verbs of the command. Each returns the exit status: 0 done, 1 the check asked for failed,
// 2 wrong usage or input; `run` returns its program's.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reporters/text/text_report.hpp"

namespace cuwarden {

struct ReportVerb {
  std::vector<std::string> files;
  TextOptions text;
  bool fail_on_leak = false;
  std::vector<std::string> symbol_folders;  // with debug files, by build id
  bool redact = false;                      // write a copy instead of showing the report
  std::string output;                       // of that copy; empty: beside the report; "-": stdout
};
int report_verb(const ReportVerb&);

struct RunVerb {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> settings;  // variables of the shim
  std::optional<std::uint64_t> simulated_bytes;
};
int run_verb(const RunVerb&);

struct SnapshotVerb {
  pid_t pid = 0;
  std::string output;  // empty: the default name in this folder; "-": standard output
};
int snapshot_verb(const SnapshotVerb&);

struct RecoverVerb {
  std::vector<std::string> places;  // folders or ledgers; empty: the usual folders
  // The longest that one ledger of another user may take; null: the usual time.
  std::optional<std::chrono::nanoseconds> longest;
  std::string output;  // of the report, or a folder for it; empty: where it belongs
};
int recover_verb(const RecoverVerb&);

struct TopVerb {
  pid_t pid = 0;  // 0: all processes
  bool once = false;
  bool json = false;  // one object, once
};
int top_verb(const TopVerb&);

int doctor_verb(const std::vector<std::string>& command);

}  // namespace cuwarden
