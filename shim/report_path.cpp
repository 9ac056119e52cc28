#include "shim/report_path.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "runtime_hooks/core/job.hpp"
#include "shim/settings.hpp"

namespace cuwarden::shim {
namespace {

std::optional<std::string_view> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe)
  if (value == nullptr) return std::nullopt;
  return value;
}

std::string program_name() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return "unknown";
  const std::string_view whole(path, static_cast<std::size_t>(length));
  const std::size_t slash = whole.rfind('/');
  return std::string(slash == std::string_view::npos ? whole : whole.substr(slash + 1));
}

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "unknown";
  return name;
}

// A field must stay one part of the path.
std::string as_file_name(std::string text) {
  for (char& c : text)
    if (c == '/') c = '_';
  return text;
}

std::string field(char letter, const Job& job) {
  switch (letter) {
    case 'e':
      return as_file_name(program_name());
    case 'h':
      return as_file_name(host_name());
    case 'p':
      return fmt::to_string(getpid());
    case 'j':
      return as_file_name(std::string(job.id.value_or("none")));
    case 'r':
      return job.rank ? fmt::to_string(*job.rank) : "none";
    default:
      return std::string(1, letter);
  }
}

// A folder stands for the default name in it.
bool is_folder(const std::string& path) {
  struct stat status {};
  return path.ends_with('/') || (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode));
}

std::string expand(std::string_view pattern) {
  const Job job = job_from(variable);
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '%' && i + 1 < pattern.size())
      path += field(pattern[++i], job);
    else
      path += pattern[i];
  }
  return path;
}

}  // namespace

std::string expand_report_path(std::string_view pattern) {
  std::string path = absolute_path(expand(pattern));
  if (is_folder(path)) path += "/" + expand(default_report_name);
  return path;
}

std::string absolute_path(std::string path) {
  char folder[PATH_MAX];
  if (path.starts_with('/') || getcwd(folder, sizeof folder) == nullptr) return path;
  return std::string(folder) + "/" + path;
}

}  // namespace cuwarden::shim
