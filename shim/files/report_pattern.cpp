#include "shim/files/report_pattern.hpp"

#include <limits.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "reporters/files/file_name_limits.hpp"
#include "reporters/words/setting_values.hpp"
#include "runtime_hooks/core/files/absolute_path.hpp"
#include "runtime_hooks/core/job.hpp"
#include "shim/support/log.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {
namespace {

std::optional<std::string_view> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::string program_name() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  std::string_view whole(path, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (whole.empty()) {
    // The kernel gives no path if the folder is too deep, or without /proc. The name is then
    // the one by which the program was started.
    const auto* const started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    whole = started == nullptr ? "unknown" : started;
  }
  const std::size_t slash = whole.rfind('/');
  return std::string(slash == std::string_view::npos ? whole : whole.substr(slash + 1));
}

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "unknown";
  return name;
}

// Returns the text without slashes, so that a field stays one part of the path.
std::string as_file_name(std::string text) {
  for (char& c : text)
    if (c == '/') c = '_';
  return text;
}

std::string text_or_none(std::optional<std::string_view> text) {
  return as_file_name(std::string(text.value_or("none")));
}

std::string field(char letter, const Job& job, int pid) {
  switch (letter) {
    case 'e':
      return as_file_name(program_name());
    case 'h':
      return as_file_name(host_name());
    case 'p':
      return std::to_string(pid);
    case 'j':
      return text_or_none(job.id);
    case 's':
      return text_or_none(job.step);
    case 'a':
      return text_or_none(job.array_task);
    case 'r':
      return job.rank ? std::to_string(*job.rank) : "none";
    default:
      return std::string(1, letter);
  }
}

// A folder stands for a report of the default name in that folder.
bool is_folder(const std::string& path) {
  struct stat status {};
  return path.ends_with('/') || (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode));
}

bool is_special(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

std::string expand(std::string_view pattern, int pid) {
  const Job job = job_from(variable);
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '%' && i + 1 < pattern.size())
      path += field(pattern[++i], job, pid);
    else
      path += pattern[i];
  }
  return path;
}

// Bytes of a report's name that are left for a number and for `.snapshot`.
constexpr std::size_t room_for_more = 16;

// Shortens each part of the path to the length that its file system allows. A program's name alone
// may already have that length.
std::string with_fitting_names(const std::string& path) {
  std::string fitting;
  // Longest name that the file system allows; 0: not asked, because no part is long.
  std::size_t most = 0;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t slash = std::min(path.find('/', start), path.size());
    const std::size_t room = slash == path.size() ? room_for_more : 0;
    const std::string_view part = std::string_view(path).substr(start, slash - start);
    if (part.size() + room > shortest_name_limit && most == 0) most = name_limit(path);
    fitting += most == 0 ? std::string(part) : fitting_name(part, most - room);
    if (slash < path.size()) fitting += '/';
    start = slash + 1;
  }
  return fitting;
}

// Returns false if the path is too long: the kernel takes no path of 4,096 bytes, although a
// process can work in a folder that deep.
bool can_be_opened(const std::string& path) {
  return path.starts_with('/') && path.size() + room_for_more < PATH_MAX;
}

// Returns a path in the ledger's folder if the user chose one, because users watch such a folder;
// otherwise in a folder for temporary files.
std::string in_another_folder(const std::string& path, std::string_view ledger_folder) {
  const std::string name = path.substr(path.rfind('/') + 1);
  std::string found;
  for (const std::string_view folder :
       {ledger_folder, variable("TMPDIR").value_or(""), std::string_view("/tmp")}) {
    found = std::string(folder) + "/" + name;
    if (folder.starts_with('/') && can_be_opened(found)) break;
  }
  log_warn(
      formatted("the report's folder has no path that the system takes (it is deeper than 4,095 "
                "bytes, or was removed). Going on with {}; CUWARDEN_REPORT sets another path.",
                found));
  return found;
}

}  // namespace

std::string expand_report_path(std::string_view pattern, std::string_view ledger_folder, int pid) {
  std::string path = absolute_path(expand(pattern, pid));
  if (path == path_of_no_report) return path;
  if (is_folder(path)) {
    path += (path.ends_with('/') ? "" : "/") + expand(default_report_name, pid);
  } else if (is_special(path)) {
    log_warn(
        formatted("CUWARDEN_REPORT={}: a device, a pipe or a socket holds no report; use {}. "
                  "Going on with {}.",
                  pattern, accepted_report_path, default_report_name));
    path = absolute_path(expand(default_report_name, pid));
  }
  path = with_fitting_names(path);
  return can_be_opened(path) ? path : in_another_folder(path, ledger_folder);
}

}  // namespace cuwarden::shim
