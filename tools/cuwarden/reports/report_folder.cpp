#include "tools/cuwarden/reports/report_folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>

#include "reporters/files/file_status.hpp"
#include "reporters/merging/merged_json.hpp"
#include "reporters/words/error_text.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/files/folder_entries.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden {
namespace {

enum class Content { report, merged, ledger, empty, other };

// Tells reports and ledgers by their first bytes. A file that names a report schema counts as a
// report; reading it later shows if something is wrong with it.
Content content_of(const Descriptor& file) {
  char start[512];
  const ssize_t count = file.read_some(start);
  const std::string_view text(start, count > 0 ? static_cast<std::size_t>(count) : 0);
  if (text.empty()) return Content::empty;
  constexpr std::uint64_t magic = ledger::magic;
  if (text.starts_with(std::string_view(reinterpret_cast<const char*>(&magic), sizeof magic)))
    return Content::ledger;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (is_merged_report(text)) return Content::merged;
  return first != text.npos && text[first] == '{' && text.find("cuwarden.report/") != text.npos
             ? Content::report
             : Content::other;
}

bool is_passed_over(std::string_view name) {
  return name == "." || name == ".." || name.starts_with(".cuwarden-") ||
         name.starts_with("cuwarden-damaged-ledger-");
}

constexpr int most_levels = 8;
constexpr std::size_t most_folders = 10'000;

std::string path_in(const std::string& folder, const std::string& name) {
  return folder + (folder.ends_with('/') ? "" : "/") + name;
}

// The names in the folder that is open, sorted. Sets `error` to an errno if not all could be read.
std::vector<std::string> names_in(const Descriptor& folder, int& error) {
  std::vector<std::string> names;
  if (!each_folder_entry(folder.number(), [&](const char* name) {
        if (!is_passed_over(name)) names.emplace_back(name);
        return true;
      }))
    error = errno;
  std::ranges::sort(names);
  return names;
}

// The folders below a folder.
struct FoldersBelow {
  std::vector<std::string> paths;
  // Lines about folders that were left out, one for each limit that was reached.
  std::vector<std::string> left_out;
  bool is_too_deep = false, is_too_many = false;  // limits that were reached
};

// Notes that the folder at the path, and perhaps others, are left out.
void leave_out(const std::string& path, bool& is_reached, const std::string& limit,
               FoldersBelow& below) {
  if (!is_reached)
    below.left_out.push_back(path + ": not searched, as " + limit +
                             "; give folders nearer to the reports");
  is_reached = true;
}

void add_folders_below(const std::string& folder, int levels, FoldersBelow& below) {
  const Descriptor opened = open_folder_to_list(AT_FDCWD, folder.c_str());
  if (!opened) return;
  int ignored = 0;
  for (const std::string& name : names_in(opened, ignored)) {
    if (below.is_too_many) return;
    struct stat status {};
    if (name.starts_with('.') ||
        status_at(opened.number(), name.c_str(), status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(status.st_mode))
      continue;
    const std::string path = path_in(folder, name);
    if (levels == 0) {
      leave_out(path, below.is_too_deep,
                "folders more than " + std::to_string(most_levels) + " levels down are left out",
                below);
    } else if (below.paths.size() + 1 >= most_folders) {
      leave_out(path, below.is_too_many,
                "only the first " + human_count(most_folders) + " folders are searched", below);
    } else {
      below.paths.push_back(path);
      add_folders_below(path, levels - 1, below);
    }
  }
}

FoldersBelow folders_below(const std::string& folder) {
  FoldersBelow below;
  add_folders_below(folder, most_levels, below);
  return below;
}

using Seen = std::set<std::pair<dev_t, ino_t>>;

// Adds what lies directly in the folder. Returns an errno if it could not be read, or 0.
int add_contents(const std::string& folder, FolderContents& found, Seen& seen) {
  const Descriptor opened = open_folder_to_list(AT_FDCWD, folder.c_str());
  if (!opened) return errno;
  int error_of_folder = 0;
  for (const std::string& name : names_in(opened, error_of_folder)) {
    const std::string path = path_in(folder, name);
    const Descriptor file = open_to_read(opened.number(), name.c_str());
    if (!file) {
      // A folder, a pipe, a socket or a dangling link is no report.
      const int error = errno;
      if (error != EISDIR && error != ENXIO && error != ENOENT && error != ELOOP)
        found.unreadable.push_back(line_about_unreadable(path, error));
      continue;
    }
    struct stat status {};
    if (fstat(file.number(), &status) != 0 || !seen.insert({status.st_dev, status.st_ino}).second)
      continue;
    switch (content_of(file)) {
      case Content::report:
        found.reports.push_back(path);
        break;
      case Content::merged:
        found.merged.push_back(path);
        break;
      case Content::ledger:
        found.ledgers.push_back(path);
        break;
      case Content::empty:
        if (name.ends_with(".json")) found.unreadable.push_back(path + ": the file is empty");
        break;
      case Content::other:
        break;
    }
  }
  return error_of_folder;
}

}  // namespace

std::vector<std::string> folders_from(const std::string& folder) {
  std::vector<std::string> all = folders_below(folder).paths;
  all.insert(all.begin(), folder);
  return all;
}

FolderContents contents_of(const std::string& folder) {
  FolderContents found;
  Seen seen;
  found.error = add_contents(folder, found, seen);
  if (found.error != 0) return found;
  const FoldersBelow below = folders_below(folder);
  for (const std::string& other : below.paths)
    if (const int error = add_contents(other, found, seen))
      found.unreadable.push_back(line_about_unreadable(other, error));
  found.unreadable.insert(found.unreadable.end(), below.left_out.begin(), below.left_out.end());
  return found;
}

std::string path_below(const std::string& folder, const std::string& path) {
  return path.substr(folder.size() + (folder.ends_with('/') ? 0 : 1));
}

std::string line_about_no_reports(const std::string& folder, const FolderContents& contents) {
  if (contents.merged.empty())
    return folder + ": it is a folder without reports; give the folder of CUWARDEN_REPORT";
  return folder + ": it is a folder without reports; give the path of its merged report, " +
         contents.merged.front();
}

std::string line_about_unreadable(const std::string& path, int error) {
  return path + ": " + error_text(error) + "; give the path of a file or folder that you may read";
}

std::string line_about_ledgers(const std::string& folder, const FolderContents& contents) {
  const std::size_t count = contents.ledgers.size();
  return folder + ": " + std::to_string(count) + (count == 1 ? " process" : " processes") +
         " with a ledger but no report";
}

}  // namespace cuwarden
