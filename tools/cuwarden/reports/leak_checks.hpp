// The checks of leaks that several verbs offer: comparison with a baseline, and conditions under
// which the command fails, for jobs of continuous integration.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "reporters/comparison/difference.hpp"
#include "reporters/comparison/gate.hpp"
#include "reporters/comparison/leaks_by_fingerprint.hpp"
#include "reporters/model/indexed_report.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// The checks of leaks that the user asked for, and the files that they read and write.
struct CheckOptions {
  Gate gate;  // conditions under which the command fails because of leaks
  // Path of the baseline (a list of known leaks) with which the leaks are compared; empty: none.
  std::string baseline;
  // Path to which a baseline with the leaks is written; "-": standard output; empty: none.
  std::string new_baseline;
  bool prints_suppressions = false;  // true: print lines that suppress the leaks
  // True if standard output has a baseline or suppressions, and nothing else: comparison and
  // outcome then go to standard error.
  bool is_output_alone() const { return prints_suppressions || new_baseline == "-"; }
  // True if the user asked for a condition, a comparison, a new baseline or suppressions.
  bool is_asked_for() const {
    return gate.is_asked_for() || !baseline.empty() || !new_baseline.empty() || prints_suppressions;
  }
};

// Reads the baseline, a list of known leaks, in the file at `path`. Returns null after an error
// line if it cannot be read.
std::optional<LeaksByFingerprint> read_baseline(const std::string& path);

// Adds the leaks of a report to `LeaksByFingerprint`, and shows a line of progress on a terminal.
// `path`: path of the report's file, for the line. `module`: text; only leaks of modules whose path
// contains the text are added; empty: all leaks. `Style`: look of the leaks' call stacks as text.
void add_leaks_of(const std::string& path, const IndexedReport&, const std::string& module,
                  const Style&, LeaksByFingerprint&);

// Collects the leaks of one or several reports, and checks them.
class LeakChecks {
 public:
  // Keeps a reference to the options. `shown`: its `module` chooses the leaks that count, and its
  // `top` is the most leaks of a comparison that are shown. Its `colour`, `full_stacks`, `columns`
  // and `ascii` set the look of the text. `descriptor`: the comparison and the outcome are printed
  // there, or to standard error if CheckOptions::is_output_alone().
  LeakChecks(const CheckOptions&, const TextOptions& shown, int descriptor);

  // Reads the baseline whose path the options have, if they have one. Forbids lines of progress if
  // the new baseline goes to a terminal. Returns false after an error line if the baseline cannot
  // be read.
  bool read_baseline();
  // Sets the leaks with which those of add() are compared. `path`: path of the report that has
  // them, for messages.
  void compare_with(const std::string& path, LeaksByFingerprint before) {
    with_ = path;
    before_ = std::move(before);
  }

  // Adds the leaks of a report to those that are checked. Does nothing if the user asked for no
  // check, and compare_with() was not called. `path`: path of the report, for messages.
  void add(const std::string& path, const IndexedReport&);
  // True if both sides of the comparison have leaks, and no fingerprint is on both sides.
  bool has_nothing_in_common() const;
  // Notes that leaks may be missing: a condition may then fail, and no new baseline is written.
  // `reason`: the reason, about which an error line was printed. Only the first reason is kept.
  void add_doubt(const std::string& reason);

  // Prints the comparison, if there is one. Writes the new baseline and prints suppressions, if the
  // options ask for them. If there is a condition, prints a line with the outcome. Returns the exit
  // status: 0, 1 if a check failed, or 2 if the new baseline was not written, after an error line.
  int finish();

 private:
  // Writes the new baseline. Returns false after an error line if it cannot be written, or if leaks
  // may be missing.
  bool write_new_baseline() const;
  // Returns the reason why leaks of the report may be missing; null: no reason is known.
  std::optional<std::string> doubt_about(const IndexedReport&) const;

  const CheckOptions& options_;  // checks that the user asked for; not owned
  TextOptions shown_;            // choice of leaks, and look of the text
  Style style_;                  // colours and call stacks of the text
  // File descriptor to which the comparison of leaks and the outcome of the checks are printed.
  int descriptor_;
  // Leaks of an earlier report or of a baseline, with which now_ is compared; null: no comparison.
  std::optional<LeaksByFingerprint> before_;
  // Path of the report or baseline from which before_ was read; empty: no comparison.
  std::string with_;
  // True if the comparison of leaks is the beginning of the output; false if an empty line is
  // printed before the comparison.
  bool is_first_ = true;
  LeaksByFingerprint now_;            // leaks in the reports that were given to add()
  std::set<std::string> suppressed_;  // fingerprints of suppressed leaks
  bool has_reports_ = false;          // true if a report was added
  // Reason why leaks may be missing from the reports; null: no reason is known.
  std::optional<std::string> doubt_;
  // True if an error line has already told the user the reason in doubt_.
  bool is_doubt_said_ = false;
};

}  // namespace cuwarden
