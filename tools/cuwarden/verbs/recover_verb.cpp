// `cuwarden recover`: makes reports of the ledgers that it finds, and says a line for each.
#include <unistd.h>

#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "reporters/files/file_status.hpp"
#include "reporters/words/error_text.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/ledgers/ledger_search.hpp"
#include "tools/cuwarden/ledgers/recovery.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/reports/report_folder.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

class Recoverer {
 public:
  Recoverer(std::chrono::nanoseconds each, const std::string& output) : time_(each) {
    request_.output = output;
  }

  void recover(const std::string& ledger) {
    const Recovery made = recover_as_owner(ledger, request_, time_);
    // Only the first of a user's ledgers without time gets a line; a user may have any number.
    if (made.outcome == RecoveryOutcome::no_time && ++left_of_[*made.owner] > 1) return;
    const std::string line = ledger + ": " + made.text;
    if (made.outcome == RecoveryOutcome::failed || made.outcome == RecoveryOutcome::no_time) {
      print_error(line);
      well_ = false;
    } else {
      print_line(STDOUT_FILENO, line);
    }
  }
  void fail(const std::string& line) {
    print_error(line);
    well_ = false;
  }
  // Prints how many more ledgers of each user had no time left.
  void finish() const {
    for (const auto& [owner, count] : left_of_) {
      if (count < 2) continue;
      print_error(std::to_string(count - 1) +
                  " more ledgers were left alone for the same reason: " + belongs_to(owner));
    }
  }
  bool well() const { return well_; }

 private:
  RecoveryRequest request_;
  TimeForUsers time_;
  std::map<uid_t, std::size_t> left_of_;  // ledgers for which their owner had no time left
  bool well_ = true;
};

std::string with_commas(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::vector<std::string> ledgers_at(const std::vector<std::string>& locations, bool are_given,
                                    Recoverer& recoverer) {
  std::vector<std::string> ledgers;
  for (const std::string& location : locations) {
    if (!is_folder(location) && is_ledger(location)) {
      ledgers.push_back(location);
      continue;
    }
    int error = 0;
    for (std::string& ledger : ledgers_in(location, error)) ledgers.push_back(std::move(ledger));
    if (error == 0 && are_given) {
      std::vector<std::string> below = folders_from(location);
      below.erase(below.begin());
      for (const std::string& folder : below) {
        int ignored = 0;
        for (std::string& ledger : ledgers_in(folder, ignored))
          ledgers.push_back(std::move(ledger));
      }
    }
    if (error == 0 || !are_given) continue;
    recoverer.fail(name_in_a_line(location) + ": " +
                   (error == ENOTDIR ? "it is no ledger" : error_text(error)) +
                   "; give a folder in which ledgers lie, or a ledger");
  }
  return ledgers;
}

// Returns the reason why `output` cannot take the reports of this many ledgers; empty if it can.
std::string wrong_output(const std::string& output, std::size_t ledgers) {
  if (output == "-") return "it takes a path: a ledger is removed once its report is on disk";
  if (ledgers > 1 && !output.ends_with('/') && !is_folder(output))
    return "there are " + std::to_string(ledgers) + " ledgers, so it takes a folder; " + output +
           " is none";
  return {};
}

}  // namespace

int recover_verb(const RecoverVerb& verb) {
  Recoverer recoverer(verb.longest.value_or(usual_time_for_a_ledger), verb.output);
  const std::vector<std::string> locations =
      verb.locations.empty() ? usual_ledger_folders() : verb.locations;
  const std::vector<std::string> ledgers =
      ledgers_at(locations, !verb.locations.empty(), recoverer);
  if (!verb.output.empty()) {
    if (const std::string wrong = wrong_output(verb.output, ledgers.size()); !wrong.empty()) {
      print_error("recover: --output: " + wrong);
      return 2;
    }
  }
  Progress progress("making reports of ledgers", ledgers.size());
  for (std::size_t i = 0; i < ledgers.size(); ++i) {
    progress.done(i);
    recoverer.recover(ledgers[i]);
  }
  recoverer.finish();
  if (ledgers.empty() && recoverer.well())
    print_line(STDOUT_FILENO,
               "no ledgers in " + with_commas(locations) +
                   ": a process that ended by itself has written its report, unless its settings "
                   "want none");
  return recoverer.well() ? 0 : 2;
}

}  // namespace cuwarden
