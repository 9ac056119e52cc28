// Chooses among several reports of one process, such as a snapshot and the report of its end: the
// last one counts. All commands that meet several reports choose here.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reporters/json/report_head.hpp"
#include "reporters/merging/known_processes.hpp"
#include "reporters/model/merged_report.hpp"
#include "reporters/model/process.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// The moment of a process's life at which a report was made. Moments compare by time, but the end
// is later than each snapshot, since the end of a killed process is known only roughly.
struct ReportMoment {
  // True if the report was made at or after the end of the process; false for a snapshot.
  bool is_final = false;
  // End of the process, or moment of the snapshot, in nanoseconds since the process's start; 0:
  // unknown.
  std::uint64_t end_ns = 0;

  friend auto operator<=>(const ReportMoment&, const ReportMoment&) = default;
};

// Returns the moment at which the report was made. `Process`: the report's facts about its process.
ReportMoment moment_of(const model::Process&);
// Returns the moment at which the report of a process was made. `MergedProcess`: row of a merged
// report that stands for the process and its report.
ReportMoment moment_of(const model::MergedProcess&);

// A file with a report.
struct FoundReport {
  std::string path;       // path of the report's file; "-": standard input
  std::string name;       // name of the report's file for messages and tables
  ReportMoment moment{};  // moment at which the report was made; ReportsByProcess::add() sets it
  // True if the report names the host of its process, which no redacted copy does;
  // ReportsByProcess::add() sets it.
  bool has_host = false;
};

// Files with reports, grouped by their process. Of several reports of one process, the latest one
// that can be read counts. Of several reports of one moment, an original is preferred to redacted
// copies.
class ReportsByProcess {
 public:
  // Adds a report's file to the files of its process, which the head of the file names. Returns
  // false if the head cannot be read, or if the file is standard input. Such a file is treated as
  // the only report of a process.
  bool add(FoundReport);
  // Adds a report's file to the files of its process. `ReportHead`: the head of the report.
  void add(FoundReport, const ReportHead&);
  // Adds a report's file as the only report of a process, without reading the file.
  void add_alone(FoundReport report) { processes_.push_back({std::move(report)}); }
  // Returns the number of processes. Each file without a known process counts as one.
  std::size_t size() const { return processes_.size(); }

  // Calls read(report) with the preferred report of each process, in the order in which the
  // processes were added. If `read` returns false, because the report cannot be read, calls it with
  // the next one. Then calls left_out(report, counted) for each report behind the one that was
  // read, `counted`.
  void each(
      FunctionRef<bool(const FoundReport&)> read,
      FunctionRef<void(const FoundReport& report, const FoundReport& counted)> left_out) const;

 private:
  // Reports of each process, the preferred one first: by moment, the latest first, and then
  // originals before redacted copies.
  std::vector<std::vector<FoundReport>> processes_;
  KnownProcesses known_;  // facts of the processes, with their indexes in processes_
};

// Returns a line for the user which says that `report` does not count, and why: `counted` is a
// later report of its process, the same report, or the original of a redacted copy.
std::string line_about_left_out(const FoundReport& report, const FoundReport& counted);

// Prints the line of line_about_left_out() to standard error.
void tell_left_out(const FoundReport& report, const FoundReport& counted);

}  // namespace cuwarden
