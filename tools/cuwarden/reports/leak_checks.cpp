#include "tools/cuwarden/reports/leak_checks.hpp"

#include <unistd.h>

#include <algorithm>

#include "reporters/comparison/baseline.hpp"
#include "reporters/files/plain_file.hpp"
#include "reporters/text/elements/leak_check.hpp"
#include "reporters/words/fitted.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/output/whole_file.hpp"

namespace cuwarden {

std::optional<LeaksByFingerprint> read_baseline(const std::string& path) {
  constexpr std::size_t largest_baseline = std::size_t{64} << 20;
  std::string content, error = read_plain_file(path, largest_baseline, content);
  std::optional<LeaksByFingerprint> known;
  if (error.empty())
    known = parse_baseline(content, path, error);
  else
    error = path + ": " + error + " (--baseline)";
  if (!known) print_error(error);
  return known;
}

LeakChecks::LeakChecks(const CheckOptions& options, const TextOptions& shown, int descriptor)
    : options_(options),
      shown_(shown),
      style_(shown.colour, shown.full_stacks),
      descriptor_(options.is_output_alone() ? STDERR_FILENO : descriptor) {}

bool LeakChecks::read_baseline() {
  if (options_.new_baseline != "-") forbid_progress_beside(options_.new_baseline);
  if (options_.baseline.empty()) return true;
  before_ = cuwarden::read_baseline(options_.baseline);
  with_ = options_.baseline;
  is_first_ = false;
  return before_.has_value();
}

std::optional<std::string> LeakChecks::doubt_about(const IndexedReport& report) const {
  const LeakCheck check = check_leaks(report, shown_.module);
  if (check.doubt) return check.doubt;
  if (options_.gate.on_leak == FailingLeaks::lost && check.count != 0 && !report->pointer_search)
    return "no search for pointers was made, since the process was killed or still ran, or " +
           std::string("CUWARDEN_REACHABILITY is off");
  return unlisted_leaks(report, shown_.module, check);
}

void add_leaks_of(const std::string& path, const IndexedReport& report, const std::string& module,
                  const Style& style, LeaksByFingerprint& leaks) {
  std::optional<Progress> progress;
  add_leaks_of(report, module, style, leaks, [&](std::size_t rows, std::size_t all) {
    if (!progress) progress.emplace("comparing leaks of " + path, all);
    progress->done(rows);
  });
}

void LeakChecks::add(const std::string& path, const IndexedReport& report) {
  if (!options_.is_asked_for() && !before_) return;
  add_leaks_of(path, report, shown_.module, style_, now_);
  add_suppressed_of(report, suppressed_);
  has_reports_ = true;
  if (doubt_) return;
  if (const auto doubt = doubt_about(report)) doubt_ = path + ": " + *doubt;
}

bool LeakChecks::has_nothing_in_common() const {
  return before_ && !before_->empty() && !now_.empty() &&
         std::ranges::none_of(now_,
                              [&](const auto& leak) { return before_->contains(leak.first); });
}

void LeakChecks::add_doubt(const std::string& reason) {
  if (doubt_) return;
  doubt_ = reason;
  is_doubt_said_ = true;
}

bool LeakChecks::write_new_baseline() const {
  const std::string& path = options_.new_baseline;
  const std::string text = baseline_text(now_);
  if (doubt_) {
    // A baseline that lacks leaks would make them new ones.
    print_error("the baseline " + path +
                " is not written, because leaks may be missing: " + *doubt_);
    return false;
  }
  if (path == "-") {
    print(STDOUT_FILENO, text);
    return true;
  }
  if (const int error = write_whole_file(path, text)) {
    print_error(line_about_unwritable("the baseline " + path, error, "--write-baseline"));
    return false;
  }
  print_line(STDERR_FILENO, "baseline: " + path);
  return true;
}

int LeakChecks::finish() {
  int status = 0;
  Difference difference;
  if (before_ && has_reports_) {
    difference = difference_of(*before_, now_, suppressed_);
    print(descriptor_,
          (is_first_ ? "" : "\n") +
              fitted(difference_text(with_, *before_, now_, difference, shown_.top, style_),
                     {shown_.columns, shown_.ascii, shown_.full_stacks}));
  }
  if (!options_.new_baseline.empty() && !write_new_baseline()) status = 2;
  if (options_.prints_suppressions) print(STDOUT_FILENO, suppression_lines(now_));
  if (options_.gate.is_asked_for()) {
    const GateOutcome outcome = judge(options_.gate, now_, difference, doubt_);
    print_line(descriptor_, outcome.line);
    if (outcome.by_doubt && !is_doubt_said_) print_error(*doubt_ + " (leaks may be missing)");
    if (outcome.failed && status == 0) status = 1;
  }
  return status;
}

}  // namespace cuwarden
