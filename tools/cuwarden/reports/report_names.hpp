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

// Looks up names of functions and source lines that reports lack. All reports that one object is
// used for share one limit of time and memory.
class ReportNames {
 public:
  // `symbol_folders`: folders with debug files (--symbols). A file there is read for names instead
  // of the file from which the process loaded its program or library.
  explicit ReportNames(std::vector<std::string> symbol_folders = {});

  // Says if files may be read for names at the paths that a report contains, which are paths of
  // programs and libraries. distrusted: only files in the symbol folders are read. Used if root
  // reads another user's report, since that user chose the paths.
  enum class Paths { trusted, distrusted };
  // Returns `distrusted` if this process is root's and the report does not come from a file of
  // root's own, else `trusted`. `report_path`: path of the report; "-" is standard input.
  Paths paths_in(const std::string& report_path) const;

  // Looks up names of functions and lines that the report in memory lacks, and adds them. `Paths`:
  // the result of paths_in() for the report.
  void complete(model::Report&, Paths);
  // Adds missing names to the report's file at `path`, by replacing the file. Does nothing if the
  // report's process may still run, because that process will replace the file itself. Does nothing
  // if the paths in the report are distrusted (paths_in()), or if the file cannot be replaced.
  void complete_file(const std::string& path);

 private:
  // Returns the object that looks names up, which the first call makes, set to read files at the
  // paths in the report or not.
  Naming& naming(Paths);

  DebugFiles debug_files_;
  bool has_folders_;  // true if the constructor was given symbol folders
  // Limit of time and memory for the names of all reports together; made at the first report.
  std::optional<SymbolBudget> budget_;
  std::optional<Naming> naming_;  // looks names up; made at the first report
};

}  // namespace cuwarden
