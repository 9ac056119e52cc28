#include "tools/cuwarden/report_folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>

#include "reporters/words/error_text.hpp"
#include "runtime_hooks/core/folder_entries.hpp"
#include "runtime_hooks/core/open_file.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden {
namespace {

enum class Content { report, ledger, empty, other };

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
  return first != text.npos && text[first] == '{' && text.find("cuwarden.report/") != text.npos
             ? Content::report
             : Content::other;
}

bool is_passed_over(std::string_view name) {
  return name == "." || name == ".." || name.starts_with(".cuwarden-") ||
         name.starts_with("cuwarden-damaged-ledger-");
}

}  // namespace

FolderContents contents_of(const std::string& folder) {
  FolderContents found;
  const Descriptor opened = open_folder_to_list(AT_FDCWD, folder.c_str());
  if (!opened) {
    found.error = errno;
    return found;
  }
  std::vector<std::string> names;
  if (!each_folder_entry(opened.number(), [&](const char* name) {
        if (!is_passed_over(name)) names.emplace_back(name);
        return true;
      }))
    found.error = errno;
  std::ranges::sort(names);

  std::set<std::pair<dev_t, ino_t>> seen;
  for (const std::string& name : names) {
    const std::string path = folder + (folder.ends_with('/') ? "" : "/") + name;
    const Descriptor file = open_to_read(opened.number(), name.c_str());
    if (!file) {
      // A folder, a pipe, a socket or a dangling link is no report.
      const int error = errno;
      if (error != EISDIR && error != ENXIO && error != ENOENT && error != ELOOP)
        found.unreadable.push_back(path + ": " + error_text(error));
      continue;
    }
    struct stat status {};
    if (fstat(file.number(), &status) != 0 || !seen.insert({status.st_dev, status.st_ino}).second)
      continue;
    switch (content_of(file)) {
      case Content::report:
        found.reports.push_back(path);
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
  return found;
}

}  // namespace cuwarden
