#include "reporters/reports/old_reports.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "reporters/files/file_name_limits.hpp"
#include "reporters/files/file_status.hpp"
#include "reporters/json/report_head.hpp"
#include "reporters/words/paths.hpp"
#include "runtime_hooks/core/files/folder_entries.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Returns the text with which the names of a program's reports begin: the last part of the path, up
// to its first field that differs from process to process.
std::string beginning_of(std::string_view pattern, std::string_view program) {
  pattern = file_name(pattern);
  std::string beginning;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      beginning += pattern[i];
      continue;
    }
    const char field = pattern[++i];
    if (field != 'e' && field != '%') return beginning;
    beginning += field == 'e' ? file_name(program) : "%";
  }
  beginning.resize(ending_of(beginning));  // a number may come in front of the ending
  return beginning;
}

struct NamePattern {
  std::string beginning, ending;
  bool fits(std::string_view name) const {
    return name.starts_with(beginning) && name.ends_with(ending) &&
           name.find(".snapshot.") == name.npos;  // a person has asked for a snapshot, so it stays
  }
};

NamePattern pattern_of(std::string_view newest, std::string_view program,
                       std::string_view path_pattern) {
  constexpr std::size_t never_shortened = 32;  // bytes that fitting_name() leaves at the beginning
  const std::string_view name = file_name(newest);
  NamePattern pattern;
  pattern.ending = name.substr(ending_of(name));
  for (const std::string_view possible : {path_pattern, std::string_view(default_report_name)}) {
    std::string beginning = beginning_of(possible, program).substr(0, never_shortened);
    if (!beginning.empty() && name.starts_with(beginning)) {
      pattern.beginning = std::move(beginning);
      break;
    }
  }
  return pattern;
}

struct OldReport {
  std::string name;
  std::int64_t end_ns = 0;  // end of the report's process, in ns since the epoch
  dev_t device = 0;
  ino_t inode = 0;
};

// Returns null if the file is not a report that may be removed.
std::optional<OldReport> old_report(int folder, const char* name, std::string_view program) {
  const Descriptor file = open_to_read(folder, name, Links::refused);
  struct stat status {};
  if (!file || status_of(file.number(), status) != 0 || status.st_uid != geteuid()) return {};
  const auto head = read_report_head(file.number());
  if (!head || head->running || head->program != program) return {};
  const auto end_ns = end_realtime_ns(*head);
  if (!end_ns) return {};
  return OldReport{name, *end_ns, status.st_dev, status.st_ino};
}

void remove_report(int folder, const OldReport& report) {
  struct stat status {};
  if (status_at(folder, report.name.c_str(), status, AT_SYMLINK_NOFOLLOW) == 0 &&
      status.st_dev == report.device && status.st_ino == report.inode)
    unlinkat(folder, report.name.c_str(), 0);
}

}  // namespace

void remove_old_reports(const std::string& own_path, std::string_view program,
                        const ReportPolicy& policy, OwnReport own_report,
                        std::chrono::nanoseconds most_time) noexcept try {
  if (policy.keep == 0 || program.empty() || own_path.empty()) return;
  const SteadyClock::time_point end = SteadyClock::now() + most_time;
  const std::string path(folder_of(own_path));
  const Descriptor folder = open_folder_to_list(AT_FDCWD, path.c_str());
  struct stat own {};
  if (!folder || status_at(AT_FDCWD, own_path.c_str(), own, AT_SYMLINK_NOFOLLOW) != 0) return;

  const NamePattern pattern = pattern_of(own_path, program, policy.path_pattern);
  std::vector<OldReport> found;
  unsigned looks = 0;
  each_folder_entry(folder.number(), [&](const char* name) {
    if (++looks % 64 == 0 && SteadyClock::now() > end) return false;
    if (!pattern.fits(name)) return true;
    if (auto report = old_report(folder.number(), name, program))
      found.push_back(std::move(*report));
    return SteadyClock::now() <= end;
  });
  if (found.size() < policy.keep) return;
  // Processes that end together all find the same order. So no process removes a report that
  // another one counts among those that stay.
  std::ranges::sort(found, [](const OldReport& left, const OldReport& right) {
    return left.end_ns != right.end_ns ? left.end_ns > right.end_ns : left.name > right.name;
  });
  const auto is_own = [&own](const OldReport& report) {
    return report.device == own.st_dev && report.inode == own.st_ino;
  };
  const auto first_old = found.begin() + policy.keep;
  const bool own_is_spared =
      own_report == OwnReport::stays && std::none_of(found.begin(), first_old, is_own);
  for (auto report = first_old - (own_is_spared ? 1 : 0); report != found.end(); ++report)
    if (!own_is_spared || !is_own(*report)) remove_report(folder.number(), *report);
} catch (...) {
  // Out of memory: old reports stay.
}

}  // namespace cuwarden
