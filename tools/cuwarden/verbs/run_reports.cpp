#include "tools/cuwarden/verbs/run_reports.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "reporters/files/given_file.hpp"
#include "reporters/json/report_head.hpp"
#include "reporters/reports/report_policy.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/ledgers/ledger_search.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/reports/latest_reports.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

constexpr std::string_view list_variable = "CUWARDEN_REPORT_LIST";
// Files that are looked at in a search. The bound is small, since any user may put files there.
constexpr std::size_t most_searched = 64;
constexpr std::size_t most_searched_bytes = std::size_t{64} << 20;

class Collection {
 public:
  Collection(const RunPaths& run_paths, const RecoveryRequest& child)
      : run_paths_(run_paths), child_(child), time_(usual_time_for_a_ledger) {
    child_.wants_content = true;
  }

  void add(const std::string& path, std::optional<std::string> content = {}) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0 || !files_.insert({status.st_dev, status.st_ino}).second)
      return;
    reports_.push_back({path, std::move(content)});
  }
  void add_unwanted() { found_.unwanted = true; }
  void add_shown() { found_.said = true; }
  bool is_empty() const { return reports_.empty(); }

  void recover(const std::string& ledger) {
    struct stat status {};
    if (stat(ledger.c_str(), &status) == 0 &&
        !ledgers_.insert({status.st_dev, status.st_ino}).second)
      return;
    Recovery made = recover_as_owner(ledger, child_, time_);
    if (made.outcome == RecoveryOutcome::recovered) {
      add(made.report, made.owner ? std::optional(std::move(made.content)) : std::nullopt);
    }
    if (!made.kept.empty()) print_error(made.text);
    switch (made.outcome) {
      case RecoveryOutcome::busy:
      case RecoveryOutcome::no_time:
      case RecoveryOutcome::running:
      case RecoveryOutcome::out_of_sight:
      case RecoveryOutcome::other_user:
        print_error(ledger + ": " + made.text);
        found_.said = true;
        break;
      case RecoveryOutcome::failed:
        print_error(made.text + "; the ledger stays at " + ledger);
        found_.said = true;
        break;
      case RecoveryOutcome::not_wanted:
        found_.unwanted = true;
        break;
      case RecoveryOutcome::recovered:
      case RecoveryOutcome::had_report:
      case RecoveryOutcome::nothing_in_it:
        break;
    }
  }

  void search_ledgers() {
    for (const std::string& folder : run_paths_.ledger_folders) {
      int ignored = 0;
      std::vector<std::string> ledgers = ledgers_in(folder, ignored);
      std::erase_if(ledgers, [&](const std::string& path) { return !is_recent(path); });
      for (const std::string& ledger : newest(std::move(ledgers))) {
        if (is_of_this_run(ledger)) recover(ledger);
      }
    }
  }

  void search_reports() {
    int ignored = 0;
    std::vector<std::string> paths = files_in(run_paths_.report_folder, "", ".json", ignored);
    std::erase_if(paths, [&](const std::string& path) { return !is_recent(path); });
    for (const std::string& path : newest(std::move(paths))) search_report(path);
  }

  // Returns what was found. Of several reports of one process, such as a snapshot and the report of
  // its end, the latest one counts.
  RunReports take() {
    ReportsByProcess by_process;
    std::map<std::string, RunReport*> by_path;
    for (RunReport& report : reports_) {
      by_path[report.path] = &report;
      const FoundReport file{report.path, report.path};
      if (!report.content)
        by_process.add(file);
      else if (const auto head = read_report_head(std::string_view(*report.content)))
        by_process.add(file, *head);
      else
        by_process.add_alone(file);
    }
    by_process.each(
        [&](const FoundReport& counted) {
          found_.reports.push_back(std::move(*by_path.at(counted.path)));
          return true;
        },
        [](const FoundReport& report, const FoundReport& counted) {
          tell_left_out(report, counted);
        });
    return std::move(found_);
  }

 private:
  bool is_recent(const std::string& path) const {
    struct stat status {};
    return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_mtime >= run_paths_.start && (status.st_uid == geteuid() || geteuid() == 0);
  }

  static std::vector<std::string> newest(std::vector<std::string> paths) {
    const auto changed = [](const std::string& path) {
      struct stat status {};
      return lstat(path.c_str(), &status) == 0 ? status.st_mtime : 0;
    };
    if (paths.size() > most_searched) {
      std::vector<std::pair<std::time_t, std::string>> dated;
      for (std::string& path : paths) dated.emplace_back(-changed(path), std::move(path));
      std::ranges::sort(dated);
      dated.resize(most_searched);
      paths.clear();
      for (auto& [time, path] : dated) paths.push_back(std::move(path));
    }
    return paths;
  }

  bool is_of_this_run(const std::string& ledger) const {
    std::string ignored;
    const auto file = LedgerFile::open(ledger, ignored);
    if (!file) return false;
    const ledger::Reader& reader = file->reader();
    for (std::uint64_t row = 1; row < reader.rows(RegionId::environment); ++row) {
      const auto variable = reader.environment(row);
      if (variable && variable->name == list_variable) return variable->value == run_paths_.list;
    }
    return false;
  }

  // Adds the report if it is of this run, which the run's variable in it shows. Another user's
  // report is read with that user's rights.
  void search_report(const std::string& path) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) return;
    const auto read = [&] {
      std::string content;
      if (!read_object_file(path, most_searched_bytes, content).empty()) content.clear();
      return content;
    };
    const bool is_anothers = status.st_uid != geteuid();
    if (is_anothers && time_.left(status.st_uid) <= std::chrono::nanoseconds{}) return;
    std::string content =
        is_anothers ? ask_as_user(status.st_uid, time_, most_searched_bytes, read).text : read();
    if (content.find(run_paths_.list.substr(run_paths_.list.rfind('/')) + '"') == content.npos)
      return;
    add(path, is_anothers ? std::optional(std::move(content)) : std::nullopt);
  }

  const RunPaths& run_paths_;
  RecoveryRequest child_;
  TimeForUsers time_;
  RunReports found_;
  std::vector<RunReport> reports_;  // reports that were found, several of one process included
  // Device and inode of each report that was found, and of each ledger that was met.
  std::set<std::pair<dev_t, ino_t>> files_, ledgers_;
};

}  // namespace

RunReports reports_of_run(const TemporaryFile& list, const RunPaths& run_paths,
                          const RecoveryRequest& child) {
  Collection collection(run_paths, child);
  if (list.has_entry(no_report_wanted)) collection.add_unwanted();
  if (list.has_entry(shown_by_inner_run)) collection.add_shown();
  for (const std::string& path : list.entries()) {
    if (is_ledger(path))
      collection.recover(path);
    else
      collection.add(path);  // does nothing for a ledger that was removed: its report is whole
  }
  // The folders are searched for root, since only root's processes can take another user's rights
  // and keep the shim. They are also searched if the list is empty: a process cannot enter a path
  // that is too long into the list.
  if (geteuid() == 0 || collection.is_empty()) {
    collection.search_ledgers();
    collection.search_reports();
  }
  return collection.take();
}

}  // namespace cuwarden
