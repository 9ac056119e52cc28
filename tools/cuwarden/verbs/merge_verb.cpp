// `cuwarden merge`: writes one merged report of many processes or ranks.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reporters/comparison/unmatched_suppressions.hpp"
#include "reporters/files/file_status.hpp"
#include "reporters/json/read_report.hpp"
#include "reporters/merging/known_processes.hpp"
#include "reporters/merging/merged_json.hpp"
#include "reporters/merging/merger.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/output/whole_file.hpp"
#include "tools/cuwarden/reports/free_output.hpp"
#include "tools/cuwarden/reports/given_reports.hpp"
#include "tools/cuwarden/reports/given_suppressions.hpp"
#include "tools/cuwarden/reports/latest_reports.hpp"
#include "tools/cuwarden/reports/report_folder.hpp"
#include "tools/cuwarden/reports/report_names.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

class Merge {
 public:
  explicit Merge(const MergeVerb& verb) : verb_(verb), names_(verb.symbol_folders) {}

  // Returns false after an error line if the merge cannot start.
  bool prepare() {
    std::vector<std::string> inputs = verb_.files;
    inputs.push_back(verb_.suppressions);
    if (!is_output_free(verb_.output, inputs)) return false;
    return verb_.suppressions.empty() || read_suppressions(verb_.suppressions, patterns_);
  }

  // Adds the files that the user's word stands for to the input.
  void find(const std::string& argument) {
    if (argument != "-" && is_folder(argument)) return find_in(argument);
    if (argument != "-" && is_ledger(argument))
      return fail(argument + ": it is a ledger; `cuwarden report` with it makes its report");
    add_input(argument, name_of_input(argument));
  }

  // Finds all input.
  void find_all() {
    Progress progress("looking at reports", verb_.files.size());
    std::size_t done = 0;
    for (const std::string& argument : verb_.files) {
      progress.done(done++);
      find(argument);
    }
  }

  void read_all() {
    Progress progress("merging reports", inputs_.size());
    std::size_t done = 0;
    std::vector<const FoundReport*> merged_inputs;
    inputs_.each(
        [&](const FoundReport& input) {
          progress.done(done++);
          if (!merged_.contains(input.path)) return read(input);
          merged_inputs.push_back(&input);
          return true;
        },
        [&](const FoundReport& input, const FoundReport& counted) {
          if (input.moment == counted.moment) return refuse(line_about_left_out(input, counted));
          tell_left_out(input, counted);
        });
    // A process of a merged report gives way to a later report only if that could be read.
    for (const FoundReport* const input : merged_inputs)
      add_merged(*input, merged_.at(input->path));
  }

  // Writes the merged report. Returns the exit status.
  int finish() {
    if (!any_added_) {
      if (status_ == 0) print_error("no input has a process, so nothing was written");
      return 2;
    }
    tell_programs();
    // A suppression may match in a report that could not be read.
    if (status_ == 0) print(STDERR_FILENO, unmatched_.text());
    const model::MergedReport merged = merger_.finish();
    if (writes_to_stdout()) {
      const auto output = std::make_unique<Output>(STDOUT_FILENO);
      write_merged_json(merged, *output);
      if (const int error = output->finish()) output_failed(error);
      return status_;
    }
    constexpr mode_t owner_only = 0600;
    WholeFile file(verb_.output, owner_only);
    if (file.error() == 0) write_merged_json(merged, file.output());
    if (file.error() != 0 || file.finish() != 0) {
      print_error(line_about_unwritable(verb_.output, file.error(), "--output"));
      return 2;
    }
    const std::size_t count = merged.processes.size();
    print_line(STDERR_FILENO, "merged: " + verb_.output + " (" + human_count(count) +
                                  (count == 1 ? " process)" : " processes)"));
    return status_;
  }

 private:
  bool writes_to_stdout() const { return is_standard_output(verb_.output); }

  // Prints the line. The merged report says so, too, since processes are missing in it.
  void fail(const std::string& line) {
    print_error(line);
    merger_.add_reason(line);
    status_ = 2;
  }

  void find_in(const std::string& folder) {
    const FolderContents contents = contents_of(folder);
    if (contents.error != 0) return fail(line_about_unreadable(folder, contents.error));
    for (const std::string& line : contents.unreadable) fail(line);
    Progress progress("looking at reports", contents.reports.size());
    std::size_t done = 0;
    for (const std::string& path : contents.reports) {
      progress.done(done++);
      add_input(path, verb_.files.size() == 1 ? path_below(folder, path) : path);
    }
    if (!contents.ledgers.empty()) {
      const std::string line = line_about_ledgers(folder, contents);
      print_error(line + "; `cuwarden recover` with this folder makes those of killed ones");
      merger_.add_reason(line);
    }
    if (contents.reports.empty() && contents.ledgers.empty())
      return fail(line_about_no_reports(folder, contents));
    if (!contents.merged.empty() && !contents.reports.empty())
      print_line(STDERR_FILENO, contents.merged.front() +
                                    ": a merged report in a folder is passed over; name it to "
                                    "merge it");
  }

  // Adds the file to the input. Merged reports are read here, since the moments of all reports of a
  // process must be known before one of them is merged.
  void add_input(const std::string& path, const std::string& name) {
    if (inputs_.add({path, name}) || merged_.contains(path)) return;
    Content loaded = load(path);
    if (loaded.text && is_merged_report(*loaded.text)) {
      if (auto merged = parse_merged_with_progress(*loaded.text, name, loaded.error)) {
        // Reports give way to those of a merged report only if it is not refused.
        if (!refusal_of_merged(name))
          for (const model::MergedProcess& process : merged->processes)
            add_moment(identity_of(process), moment_of(process));
        merged_.emplace(path, std::move(*merged));
      }
    }
    if (path == "-" || is_stream(path)) contents_.emplace(path, std::move(loaded));
  }

  // Returns a line if the user gave an option that needs the reports themselves; otherwise null.
  std::optional<std::string> refusal_of_merged(const std::string& name) const {
    const OptionsForReports options{.suppressions = !verb_.suppressions.empty(),
                                    .symbols = !verb_.symbol_folders.empty()};
    return options.refusal(name);
  }

  // Notes the moment of a report that was read.
  void add_moment(const ProcessIdentity& process, ReportMoment moment) {
    if (const auto known = known_.find(process)) {
      moments_[*known] = std::max(moments_[*known], moment);
    } else {
      known_.add(process, moments_.size());
      moments_.push_back(moment);
    }
  }

  // True if a report of the process was read that is later than one of the moment.
  bool is_later_read(const ProcessIdentity& process, ReportMoment moment) const {
    const auto known = known_.find(process);
    return known && moments_[*known] > moment;
  }

  // The text of an input; null with a line about the reason if it cannot be read.
  struct Content {
    std::optional<std::string> text;
    std::string error;
  };

  static Content load(const std::string& path) {
    Content loaded;
    loaded.text = load_content(path, loaded.error);
    return loaded;
  }

  Content content_of(const FoundReport& input) const {
    const auto kept = contents_.find(input.path);
    return kept == contents_.end() ? load(input.path) : kept->second;
  }

  // Reads a report that is not merged. Returns false after an error line.
  bool read(const FoundReport& input) {
    auto [content, error] = content_of(input);
    if (content && is_merged_report(*content)) {
      parse_merged_report(*content, input.name, error);
      fail(error);
      return false;
    }
    auto report =
        content ? parse_with_progress(*content, name_of_input(input.path), error) : std::nullopt;
    if (!report) {
      fail(error);
      return false;
    }
    names_.complete(*report, names_.paths_in(input.path));
    suppress_leaks(*report, patterns_);
    add(input, IndexedReport(std::move(*report)));
    return true;
  }

  void add(const FoundReport& input, const IndexedReport& report) {
    const model::Process& process = report->process;
    const ProcessIdentity identity = identity_of(process);
    const ReportMoment moment = moment_of(process);
    if (is_later_read(identity, moment))
      return print_line(STDERR_FILENO, input.name +
                                           ": another input has a later report of its process; "
                                           "only the later one counts");
    if (merger_.knows(identity))
      return refuse(input.name + ": its process is already merged; it counts once");
    merger_.add(input.name, report, ToldProgress("merging leaks of " + input.name));
    unmatched_.add(report->suppressions, patterns_);
    add_moment(identity, moment);
    any_added_ = true;
    add_program(process.program);
  }

  void add_merged(const FoundReport& input, const model::MergedReport& merged) {
    if (const auto refusal = refusal_of_merged(input.name)) return fail(*refusal);
    std::size_t earlier = 0;
    const auto counts = [&](const model::MergedProcess& process) {
      const bool is_earlier = is_later_read(identity_of(process), moment_of(process));
      if (is_earlier) ++earlier;
      return !is_earlier;
    };
    for (const model::MergedProcess& process : merged.processes) add_program(process.program);
    const std::size_t all = merged.processes.size(), known = merger_.add(merged, counts);
    if (earlier + known < all) any_added_ = true;
    if (earlier != 0)
      print_line(STDERR_FILENO, input.name + ": of " + human_count(earlier) + " of its " +
                                    human_count(all) +
                                    " processes another input has a later report; only the later "
                                    "ones count");
    if (known != 0)
      refuse(input.name + ": " + human_count(known) + " of its " + human_count(all) +
             " processes are already merged; each counts once");
  }

  // Prints a line about input that adds nothing. The merged report lacks nothing for that.
  void refuse(const std::string& line) {
    print_error(line);
    status_ = 2;
  }

  void add_program(const model::Text& program) {
    if (program) programs_.insert(printable(std::string(file_name(*program))));
  }

  // Says which programs the processes ran, if they are different ones.
  void tell_programs() const {
    constexpr std::size_t most_named = 5;
    if (programs_.size() < 2) return;
    std::string names;
    std::size_t named = 0;
    for (const std::string& program : programs_)
      if (named++ < most_named) names += (names.empty() ? "" : ", ") + program;
    if (named > most_named) names += ", " + human_count(named - most_named) + " more";
    print_line(STDERR_FILENO,
               "the reports are of " + human_count(programs_.size()) + " programs: " + names);
  }

  const MergeVerb& verb_;
  ReportNames names_;
  std::vector<std::string> patterns_;  // suppressions that the user gave
  UnmatchedSuppressions unmatched_;
  ReportsByProcess inputs_;
  std::map<std::string, model::MergedReport> merged_;  // merged reports of the input, by path
  // Contents of standard input and of pipes, by path: they can be read only once.
  std::map<std::string, Content> contents_;
  // Processes of reports that were read, by index in moments_, and the latest moment of each.
  KnownProcesses known_;
  std::vector<ReportMoment> moments_;
  Merger merger_;
  std::set<std::string> programs_;
  bool any_added_ = false;  // true if a process was added
  int status_ = 0;
};

}  // namespace

int merge_verb(const MergeVerb& verb) {
  if (!is_standard_output(verb.output)) forbid_progress_beside(verb.output);
  Merge merge(verb);
  if (!merge.prepare()) return 2;
  merge.find_all();
  merge.read_all();
  return merge.finish();
}

}  // namespace cuwarden
