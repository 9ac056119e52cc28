// Completes the names of functions and source lines in reports, after their processes have ended.
// The command has more time for that than the process had. This machine may also have debug files
// that the machine of the process lacks.
#pragma once

#include <string>
#include <vector>

#include "reporters/reports/report_copy.hpp"
#include "reporters/symbols/naming.hpp"
#include "tools/cuwarden/reports/debug_files.hpp"

namespace cuwarden {

// Looks up source lines and names of functions that reports lack. One object has one limit of time
// and memory for all its reports together, from the first report on. Names beyond it stay missing.
class ReportNames {
 public:
  // `symbol_folders`: paths of folders with debug files (--symbols); empty: none. A file there with
  // the right build id is read for names, instead of the file from which the process loaded its
  // program or library.
  explicit ReportNames(std::vector<std::string> symbol_folders = {});

  // Says if files may be read for names at the paths of programs and libraries that a report
  // contains. trusted: they may. distrusted: only files in the symbol folders are read, because
  // this process is root's and another user may have chosen the paths.
  enum class Paths { trusted, distrusted };
  // Says if files may be read for names at the paths that a report contains. Returns
  // Paths::distrusted if this process is root's, unless the report's file is known to belong to
  // root; otherwise Paths::trusted. `report_path`: path of the report; "-": standard input.
  Paths paths_in(const std::string& report_path) const;

  // Looks up names of functions and lines that the report lacks, and adds them to the report in
  // memory; its file is not changed. `Paths`: the result of paths_in() for the report.
  void complete(model::Report&, Paths);
  // Adds missing names of functions and lines to the report's file at `path`, by replacing the
  // file. Does nothing if the report's process may still run, because that process will replace the
  // file itself. Does nothing if the paths in the report are distrusted (paths_in()), or if the
  // file cannot be replaced.
  void complete_file(const std::string& path);

 private:
  // Returns naming_, which the first call makes, and sets which files it may read. Paths::trusted:
  // those at the paths in the report, too. Paths::distrusted: only those in the symbol folders.
  Naming& naming(Paths);

  DebugFiles debug_files_;  // finds files with debug information by build id in the symbol folders
  bool has_folders_;        // true if the constructor was given symbol folders
  // Limit of the time and memory that finding functions' names may take, for all reports together;
  // made at the first report.
  std::optional<SymbolBudget> budget_;
  std::optional<Naming> naming_;  // looks names up; made at the first report
};

}  // namespace cuwarden
