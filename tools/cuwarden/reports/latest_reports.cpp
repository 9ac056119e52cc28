#include "tools/cuwarden/reports/latest_reports.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime_hooks/core/files/open_file.hpp"
#include "tools/cuwarden/output/command_output.hpp"

namespace cuwarden {

namespace {

// Returns the moment of a report with this reason of the process's end, which was at `end_ns`.
ReportMoment moment_at_end(const model::Text& end_reason, model::Figure end_ns) {
  return {end_reason != "running", end_ns.value_or(0)};
}

// True if `report` counts rather than `other`, a report of the same process.
bool is_preferred(const FoundReport& report, const FoundReport& other) {
  if (report.moment != other.moment) return report.moment > other.moment;
  return report.has_host && !other.has_host;
}

}  // namespace

ReportMoment moment_of(const model::Process& process) {
  return moment_at_end(process.end_reason, process.end_ns);
}

ReportMoment moment_of(const model::MergedProcess& process) {
  return moment_at_end(process.end_reason, process.end_ns);
}

bool ReportsByProcess::add(FoundReport report) {
  // Standard input can be read only once.
  const Descriptor file = report.path == "-" ? Descriptor() : open_to_read(report.path.c_str());
  const auto head = file ? read_report_head(file.number()) : std::nullopt;
  if (head)
    add(std::move(report), *head);
  else
    add_alone(std::move(report));
  return head.has_value();
}

void ReportsByProcess::add(FoundReport report, const ReportHead& head) {
  report.moment = {!head.running, head.end_ns};
  report.has_host = !head.host.empty();
  const ProcessIdentity process{model::text_or_null(head.host),
                                head.pid == 0 ? model::Figure() : head.pid, head.start,
                                head.program};
  const auto known = known_.find(process);
  if (!known) {
    known_.add(process, processes_.size());
    add_alone(std::move(report));
    return;
  }
  std::vector<FoundReport>& of_process = processes_[*known];
  of_process.insert(std::ranges::upper_bound(of_process, report, is_preferred), std::move(report));
}

void ReportsByProcess::each(
    FunctionRef<bool(const FoundReport&)> read,
    FunctionRef<void(const FoundReport& report, const FoundReport& counted)> left_out) const {
  for (const std::vector<FoundReport>& of_process : processes_) {
    const FoundReport* counted = nullptr;
    for (const FoundReport& report : of_process)
      if (counted != nullptr)
        left_out(report, *counted);
      else if (read(report))
        counted = &report;
  }
}

std::string line_about_left_out(const FoundReport& report, const FoundReport& counted) {
  if (report.moment == counted.moment && !report.has_host && counted.has_host)
    return report.name + ": a redacted copy of " + counted.name + "; only the original counts";
  if (report.moment == counted.moment)
    return report.name + ": the same report as " + counted.name + "; it counts once";
  return report.name + ": an earlier report of the process of " + counted.name +
         "; only the later one counts";
}

void tell_left_out(const FoundReport& report, const FoundReport& counted) {
  print_line(STDERR_FILENO, line_about_left_out(report, counted));
}

}  // namespace cuwarden
