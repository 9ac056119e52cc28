// `cuwarden merge`: writes one merged report of many processes or ranks.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reporters/files/file_status.hpp"
#include "reporters/json/read_report.hpp"
#include "reporters/json/report_head.hpp"
#include "reporters/merging/known_processes.hpp"
#include "reporters/merging/merged_json.hpp"
#include "reporters/merging/merger.hpp"
#include "reporters/words/error_text.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/output/whole_file.hpp"
#include "tools/cuwarden/reports/free_output.hpp"
#include "tools/cuwarden/reports/given_reports.hpp"
#include "tools/cuwarden/reports/given_suppressions.hpp"
#include "tools/cuwarden/reports/report_folder.hpp"
#include "tools/cuwarden/reports/report_names.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

// A file that is merged.
struct Input {
  std::string path;          // "-": standard input
  std::string name;          // MergedProcess::report of its process
  std::uint64_t end_ns = 0;  // end of the process, or moment of the report, in ns since its start
};
// The reports of one process, the latest first. The latest that can be read counts.
using Inputs = std::vector<Input>;

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
    add_input({argument, name_of_input(argument)});
  }

  void read_all() {
    Progress progress("merging reports", inputs_.size());
    std::size_t done = 0;
    for (const Inputs& of_process : inputs_) {
      progress.done(done++);
      const Input* counted = nullptr;
      for (const Input& input : of_process)
        if (counted != nullptr)
          tell_left_out(input, *counted);
        else if (read(input))
          counted = &input;
    }
  }

  // Writes the merged report. Returns the exit status.
  int finish() {
    if (!any_read_) return 2;
    tell_programs();
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
      print_error("cannot write " + verb_.output + ": " + error_text(file.error()));
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
    if (contents.error != 0) return fail(folder + ": " + error_text(contents.error));
    for (const std::string& line : contents.unreadable) fail(line);
    Progress progress("looking at reports", contents.reports.size());
    std::size_t done = 0;
    for (const std::string& path : contents.reports) {
      progress.done(done++);
      add_input({path, verb_.files.size() == 1 ? path_below(folder, path) : path});
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

  // Adds the file to those of its process. A file whose process is not known from its head has its
  // own row. Standard input can be read only once, so that its head is not read here.
  void add_input(Input input) {
    const Descriptor file = input.path == "-" ? Descriptor() : open_to_read(input.path.c_str());
    const auto head = file ? read_report_head(file.number()) : std::nullopt;
    if (!head) {
      inputs_.push_back({std::move(input)});
      return;
    }
    input.end_ns = head->end_ns;
    const ProcessIdentity process{model::text_or_null(head->host),
                                  head->pid == 0 ? model::Figure() : head->pid, head->start,
                                  head->program};
    const auto known = given_.find(process);
    if (!known) {
      given_.add(process, inputs_.size());
      inputs_.push_back({std::move(input)});
      return;
    }
    Inputs& of_process = inputs_[*known];
    const auto later =
        std::ranges::upper_bound(of_process, input.end_ns, std::greater(), &Input::end_ns);
    of_process.insert(later, std::move(input));
  }

  // Says that a file is left out, since another one has a report of the same process.
  void tell_left_out(const Input& input, const Input& counted) {
    if (input.end_ns == counted.end_ns)
      return refuse(input.name + ": the same report as " + counted.name + "; it counts once");
    print_line(STDERR_FILENO, input.name + ": an earlier report of the process of " + counted.name +
                                  "; only the later one counts");
  }

  // Returns false after an error line.
  bool read(const Input& input) {
    std::string error;
    const auto content = load_content(input.path, error);
    if (content && is_merged_report(*content)) return add_merged(input, *content);
    auto report = content ? parse_report(*content, name_of_input(input.path), error) : std::nullopt;
    if (!report) {
      fail(error);
      return false;
    }
    names_.complete(*report, names_.paths_in(input.path));
    suppress_leaks(*report, patterns_);
    add(input, IndexedReport(std::move(*report)));
    return true;
  }

  void add(const Input& input, const IndexedReport& report) {
    const model::Process& process = report->process;
    any_read_ = true;
    if (merger_.knows({process.host, process.pid, process.start, process.program}))
      return refuse(input.name + ": its process is already merged; it counts once");
    merger_.add(input.name, report);
    add_program(process.program);
  }

  // Returns false after an error line.
  bool add_merged(const Input& input, const std::string& content) {
    const std::string name = name_of_input(input.path);
    const OptionsForReports options{.suppressions = !verb_.suppressions.empty(),
                                    .symbols = !verb_.symbol_folders.empty()};
    std::string error = options.refusal(name).value_or("");
    const auto merged = error.empty() ? parse_merged_report(content, name, error) : std::nullopt;
    if (!merged) {
      fail(error);
      return false;
    }
    any_read_ = true;
    for (const model::MergedProcess& process : merged->processes) add_program(process.program);
    const std::size_t all = merged->processes.size(), known = merger_.add(*merged);
    if (known != 0)
      refuse(input.name + ": " + human_count(known) + " of its " + human_count(all) +
             " processes are already merged; each counts once");
    return true;
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
  std::vector<Inputs> inputs_;
  KnownProcesses given_;  // processes of inputs_, by index there
  Merger merger_;
  std::set<std::string> programs_;
  bool any_read_ = false;  // true if a report was read
  int status_ = 0;
};

}  // namespace

int merge_verb(const MergeVerb& verb) {
  Merge merge(verb);
  if (!merge.prepare()) return 2;
  for (const std::string& argument : verb.files) merge.find(argument);
  merge.read_all();
  return merge.finish();
}

}  // namespace cuwarden
