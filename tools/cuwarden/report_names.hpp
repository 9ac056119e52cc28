// Completes the names of reports, outside of the processes that wrote them: with all the time that
// people wait for a command, and with files that only this machine has.
#pragma once

#include <string>
#include <vector>

#include "reporters/reports/report_copy.hpp"
#include "reporters/symbols/naming.hpp"
#include "tools/cuwarden/debug_files.hpp"

namespace cuwarden {

class ReportNames {
 public:
  // `symbol_folders`: folders of debug files, whose names go before all others.
  explicit ReportNames(std::vector<std::string> symbol_folders = {});

  // A report names the files that are read for it. Root reads none that a user has named: only what
  // lies in the folders of symbols counts then.
  enum class Paths { trusted, distrusted };
  Paths paths_in(const std::string& report_path) const;

  void complete(model::Report&, Paths);
  // Puts the names into the report's file, if it lacks some and its process has ended: a process
  // that goes on would find another file in the place of its own.
  void complete_file(const std::string& path);

 private:
  Naming& naming(Paths);

  DebugFiles debug_files_;
  bool has_folders_;
  std::optional<SymbolBudget> budget_;  // of all reports together, from the first one on
  std::optional<Naming> naming_;
};

}  // namespace cuwarden
