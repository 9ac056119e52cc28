#include "tools/cuwarden/reports/report_names.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "reporters/json/report_head.hpp"
#include "reporters/symbols/name_completion.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/reports/given_reports.hpp"

namespace cuwarden {
namespace {

// Returns true if the report's process may still run. A new process with the same pid also counts;
// then the report merely stays without names.
bool may_be_running(const model::Process& process) {
  if (process.end_reason == "running" || !process.pid) return true;
  return kill(static_cast<pid_t>(*process.pid), 0) == 0 || errno != ESRCH;
}

// Completes the names, and shows how far that is. Returns true if the report has changed.
bool complete_with_progress(model::Report& report, Naming& naming) {
  std::optional<Progress> progress;
  return complete_names(report, naming, [&](std::size_t done, std::size_t all) {
    if (!progress) progress.emplace("finding names of functions in modules", all);
    progress->done(done);
  });
}

}  // namespace

ReportNames::ReportNames(std::vector<std::string> symbol_folders)
    : debug_files_(std::move(symbol_folders)), has_folders_(!debug_files_.empty()) {}

ReportNames::Paths ReportNames::paths_in(const std::string& report_path) const {
  struct stat status {};
  const bool is_own =
      report_path != "-" && stat(report_path.c_str(), &status) == 0 && status.st_uid == geteuid();
  return is_own || geteuid() != 0 ? Paths::trusted : Paths::distrusted;
}

Naming& ReportNames::naming(Paths paths) {
  if (!naming_) {
    budget_.emplace(longest_symbol_time_afterwards, most_symbol_memory_afterwards);
    naming_.emplace(*budget_);
    if (has_folders_)
      naming_->look_in([this](const std::string& build_id) { return debug_files_.find(build_id); });
  }
  naming_->use_paths(paths == Paths::trusted);
  return *naming_;
}

void ReportNames::complete(model::Report& report, Paths paths) {
  if (has_folders_ || (paths == Paths::trusted && lacks_names(report)))
    complete_with_progress(report, naming(paths));
}

void ReportNames::complete_file(const std::string& path) {
  std::string ignored;
  if (paths_in(path) == Paths::distrusted) return;
  {
    // A report that has all its names is not read further; of thousands of ranks, most do.
    const Descriptor file = open_to_read(path.c_str());
    const auto head = file ? read_report_head(file.number()) : std::nullopt;
    if (!head || head->has_all_names) return;
  }
  auto copy = load_copy_with_progress(path, ignored);
  if (!copy || !lacks_names(copy->report()) || may_be_running(copy->report().process) ||
      !complete_with_progress(copy->report(), naming(Paths::trusted)))
    return;
  // A file that cannot be replaced stays as it is. `cuwarden report` completes the names that it
  // shows.
  ignored = copy->replace();
}

}  // namespace cuwarden
