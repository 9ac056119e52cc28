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
#include "reporters/text/text_elements.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// The checks of leaks that the user asked for, and the files that they read and write.
struct CheckOptions {
  Gate gate;  // conditions under which the check fails
  // Path of the baseline with which the leaks are compared; empty: none.
  std::string baseline;
  // Path to which a baseline with the leaks is written; "-": standard output; empty: none.
  std::string new_baseline;
  bool prints_suppressions = false;  // true: print lines that suppress the leaks
  // True if standard output has a baseline or suppressions, and nothing else.
  bool is_output_alone() const { return prints_suppressions || new_baseline == "-"; }
  // True if there is anything to do with the leaks.
  bool is_asked_for() const {
    return gate.is_asked_for() || !baseline.empty() || !new_baseline.empty() || prints_suppressions;
  }
};

// Reads the baseline at the path. Returns null after an error line.
std::optional<LeaksByFingerprint> read_baseline(const std::string& path);

// Collects the leaks of one or several reports, and checks them.
class LeakChecks {
 public:
  // Keeps a reference to the options. `shown`: `module` chooses the leaks that count, `colour` and
  // `full_stacks` set the look of call stacks, and `top` limits the leaks of a comparison that are
  // shown. `descriptor`: where a comparison and the outcome are printed; standard error if
  // CheckOptions::is_output_alone().
  LeakChecks(const CheckOptions&, const TextOptions& shown, int descriptor);

  // Reads the baseline, if the options name one. Returns false after an error line.
  bool read_baseline();
  // Sets the leaks with which those of add() are compared. `path`: path of the report that has
  // them.
  void compare_with(const std::string& path, LeaksByFingerprint before) {
    with_ = path;
    before_ = std::move(before);
  }

  // Adds the leaks of a report, if there is anything to do with them. `path`: path of the report,
  // for messages.
  void add(const std::string& path, const IndexedReport&);
  // True if there are leaks before and now, and no fingerprint is among both.
  bool has_nothing_in_common() const;
  // Notes that leaks may be missing, for a reason about which an error line was printed. Only the
  // first reason is kept.
  void add_doubt(const std::string& reason);

  // Prints the comparison, if there is one, writes the new baseline, if the options ask for one,
  // and prints one line with the outcome, if there is a condition. Returns the exit status: 0, 1 if
  // a check failed, 2 after an error line about the new baseline.
  int finish();

 private:
  // Writes the new baseline, unless leaks may be missing. Returns false after an error line.
  bool write_new_baseline() const;
  // Returns the reason why leaks of the report may be missing; null: none is known.
  std::optional<std::string> doubt_about(const IndexedReport&) const;

  const CheckOptions& options_;
  TextOptions shown_;
  Style style_;
  int descriptor_;
  std::optional<LeaksByFingerprint> before_;  // null: nothing is compared
  std::string with_;      // path of the report or baseline with the leaks before_
  bool is_first_ = true;  // true if nothing is printed before the comparison
  LeaksByFingerprint now_;
  std::set<std::string> suppressed_;  // fingerprints of suppressed leaks
  bool has_reports_ = false;          // true if a report was added
  std::optional<std::string> doubt_;  // reason why leaks may be missing; null: none
  bool is_doubt_said_ = false;        // true if an error line was printed about doubt_
};

}  // namespace cuwarden
