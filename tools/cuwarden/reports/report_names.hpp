// Completes the function names in reports after their processes have ended. There is more time for
// that here than in the process, and this machine may have debug files that the other one lacks.
#pragma once

#include <string>
#include <vector>

#include "reporters/reports/report_copy.hpp"
#include "reporters/symbols/naming.hpp"
#include "tools/cuwarden/reports/debug_files.hpp"

namespace cuwarden {

class ReportNames {
 public:
  // `symbol_folders`: folders of debug files. Their names take precedence over all others.
  explicit ReportNames(std::vector<std::string> symbol_folders = {});

  // A report contains the paths of the modules that are read for names. They are distrusted if root
  // reads another user's report: then only files in the symbol folders are read.
  enum class Paths { trusted, distrusted };
  Paths paths_in(const std::string& report_path) const;

  // Adds missing names to the report's file, if its process has ended. A running process must not
  // find its report replaced by another file.
  void complete(model::Report&, Paths);
  void complete_file(const std::string& path);

 private:
  Naming& naming(Paths);

  DebugFiles debug_files_;
  bool has_folders_;
  std::optional<SymbolBudget> budget_;  // for all reports together; made at the first one
  std::optional<Naming> naming_;
};

}  // namespace cuwarden
