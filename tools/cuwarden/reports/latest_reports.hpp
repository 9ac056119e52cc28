// Chooses among several reports of one process, such as a snapshot and the report of its end: the
// last one counts. All commands that read folders of reports choose here.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reporters/merging/known_processes.hpp"
#include "reporters/model/merged_report.hpp"
#include "reporters/model/process.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// The moment of a process's life of which a report tells. A report of the end is later than each
// snapshot: the time of a killed process's end may not be known to the last.
struct ReportMoment {
  bool is_final = false;     // true if the process had ended
  std::uint64_t end_ns = 0;  // end of the process, or moment of the snapshot, in ns since its start

  friend auto operator<=>(const ReportMoment&, const ReportMoment&) = default;
};

// Returns the moment of which a report of the process tells.
ReportMoment moment_of(const model::Process&);
// Returns the moment of which the process's row of a merged report tells.
ReportMoment moment_of(const model::MergedProcess&);

// A file with a report.
struct FoundReport {
  std::string path;       // path of the file; "-": standard input
  std::string name;       // name of the file for messages and tables
  ReportMoment moment{};  // set by ReportsByProcess::add()
};

// Files of reports, by the process of which they tell.
class ReportsByProcess {
 public:
  // Adds the file. Its head is read, unless it is standard input. A file whose process is not known
  // from its head has a row of its own; then the function returns false.
  bool add(FoundReport);
  // Adds a file that has a row of its own, whatever its process is.
  void add_alone(FoundReport report) { processes_.push_back({std::move(report)}); }
  // Returns the number of processes, and of files of unknown processes.
  std::size_t size() const { return processes_.size(); }

  // Calls read(report) with the latest report of each process, in the order in which the processes
  // were added. If `read` returns false, because the report cannot be read, it is called with the
  // next earlier one. Then calls left_out(report, counted) with each other report of the process
  // and with the one that was read.
  void each(
      FunctionRef<bool(const FoundReport&)> read,
      FunctionRef<void(const FoundReport& report, const FoundReport& counted)> left_out) const;

 private:
  std::vector<std::vector<FoundReport>> processes_;  // of each process, the latest report first
  KnownProcesses known_;                             // processes by their index in processes_
};

// Returns a line which says that a report is left out, since another one is of the same process.
std::string line_about_left_out(const FoundReport& report, const FoundReport& counted);

// Prints line_about_left_out() to standard error.
void tell_left_out(const FoundReport& report, const FoundReport& counted);

}  // namespace cuwarden
