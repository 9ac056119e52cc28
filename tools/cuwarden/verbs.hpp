// The verbs of the command. Each returns the exit status: 0 done, 1 the check asked for failed,
// 2 wrong usage or input; `run` returns its program's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reporters/text_report.hpp"

namespace cuwarden {

struct ReportVerb {
  std::vector<std::string> files;
  TextOptions text;
  bool fail_on_leak = false;
};
int report_verb(const ReportVerb&);

struct RunVerb {
  std::vector<std::string> command;
  std::optional<std::string> report, stack_depth, log, ledger_dir;
  std::optional<std::uint64_t> simulated_bytes;
};
int run_verb(const RunVerb&);

int doctor_verb(const std::vector<std::string>& command);

}  // namespace cuwarden
