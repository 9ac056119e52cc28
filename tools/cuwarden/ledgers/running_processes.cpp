#include "tools/cuwarden/ledgers/running_processes.hpp"

#include <dirent.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "reporters/words/paths.hpp"
#include "runtime_hooks/core/files/boot_id.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/core/files/proc_stat.hpp"

namespace cuwarden {
namespace {

std::string proc(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// Returns the numbers among the names in a folder of /proc.
std::vector<pid_t> numbers_in(const std::string& path) {
  std::vector<pid_t> numbers;
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return numbers;
  while (const dirent* entry = readdir(folder)) {
    char* end = nullptr;
    const long number = std::strtol(entry->d_name, &end, 10);
    if (number > 0 && *end == '\0') numbers.push_back(static_cast<pid_t>(number));
  }
  closedir(folder);
  return numbers;
}

// Returns the contents of a file of /proc. Sets `error` to an errno, or to 0.
std::string content_of(const std::string& path, int& error) {
  std::string content;
  error = 0;
  const Descriptor file = open_to_read(path.c_str());
  if (!file) {
    error = errno;
    return content;
  }
  char piece[32 * 1024];
  for (;;) {
    const ssize_t count = file.read_some(piece);
    if (count < 0) error = errno;
    if (count <= 0) break;
    content.append(piece, static_cast<std::size_t>(count));
  }
  return content;
}

std::string_view next_word(std::string_view& text) {
  const std::size_t start = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t end = std::min(text.find(' ', start), text.size());
  const std::string_view word = text.substr(start, end - start);
  text.remove_prefix(end);
  return word;
}

// Reads a line of /proc/PID/maps: "start-end perms offset device inode   path [(deleted)]".
void add_mapping(std::string_view line, Mappings& mappings) {
  constexpr std::string_view deleted = " (deleted)";
  const std::string_view range = next_word(line);
  for (int i = 0; i < 3; ++i) next_word(line);
  const std::string_view inode = next_word(line);
  const std::size_t slash = line.find('/');
  if (slash == line.npos) return;
  MappedLedger found;
  std::string_view path = line.substr(slash);
  if (path.ends_with(deleted)) {
    found.deleted = true;
    path.remove_suffix(deleted.size());
  }
  const std::string_view name = file_name(path);
  if (name.starts_with("libcuwarden.so")) mappings.has_shim = true;
  if (!name.starts_with("cuwarden-ledger-")) return;
  std::from_chars(inode.data(), inode.data() + inode.size(), found.inode);
  // A ledger has several mappings, for its used part and for the part to grow into; it counts once.
  for (const MappedLedger& known : mappings.ledgers) {
    if (known.path == path && known.inode == found.inode) return;
  }
  found.range = range;
  found.path = path;
  mappings.ledgers.push_back(std::move(found));
}

// Returns true if the process `pid` is the one that writes the ledger. Its pid in the ledger may be
// another one, of another pid namespace.
bool is_process_of(pid_t pid, const ledger::ProcessView& process, ino_t inode) {
  const auto stat = process_stat(pid);
  if (!stat || stat->ended || stat->start_ticks != process.start_ticks) return false;
  // This file is a copy. Its process counts as running, since it may still write the original.
  if (process.file_inode != 0 && process.file_inode != inode) return true;
  // After an exec the process has the same pid and start time, but does not map the ledger any
  // more.
  const Mappings mappings = mappings_of(pid);
  return mappings.error != 0 ||
         std::ranges::any_of(mappings.ledgers,
                             [&](const MappedLedger& ledger) { return ledger.inode == inode; });
}

constexpr std::uint32_t initial_pid_namespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO

}  // namespace

std::optional<ProcessStat> process_stat(pid_t pid) {
  int error = 0;
  const std::string text = content_of(proc(pid, "stat"), error);
  const ProcStat found = proc_stat_in(text);
  if (found.state == '\0' || found.start_ticks == 0) return std::nullopt;
  ProcessStat stat;
  stat.name = found.name;
  const bool is_zombie = found.state == 'Z' || found.state == 'X';
  stat.ended = is_zombie && numbers_in(proc(pid, "task")).size() < 2;
  stat.start_ticks = found.start_ticks;
  return stat;
}

std::string user_of(pid_t pid) {
  struct stat status {};
  if (stat(("/proc/" + std::to_string(pid)).c_str(), &status) != 0) return {};
  const passwd* const entry = getpwuid(status.st_uid);
  return entry != nullptr ? std::string(entry->pw_name) : std::to_string(status.st_uid);
}

std::vector<pid_t> all_pids() { return numbers_in("/proc"); }

std::string proc_folder(pid_t pid) {
  std::string folder = "/proc/" + std::to_string(pid);
  struct stat status {};
  // The folder of a thread that has ended has no `root`.
  if (stat((folder + "/root").c_str(), &status) == 0) return folder;
  for (const pid_t thread : numbers_in(folder + "/task")) {
    std::string other = folder + "/task/" + std::to_string(thread);
    if (stat((other + "/root").c_str(), &status) == 0) return other;
  }
  return folder;
}

std::uint32_t own_pid(pid_t pid) {
  int error = 0;
  const std::string text = content_of(proc(pid, "status"), error);
  const std::size_t at = text.find("\nNSpid:");
  if (at == text.npos) return 0;
  std::string_view line = std::string_view(text).substr(at + 7);
  line = line.substr(0, line.find('\n'));
  const std::size_t last = line.find_last_of(" \t");
  return static_cast<std::uint32_t>(
      std::strtoul(std::string(line.substr(last + 1)).c_str(), nullptr, 10));
}

std::uint32_t pid_namespace_of(pid_t pid) {
  char text[64] = "";
  if (readlink(proc(pid, "ns/pid").c_str(), text, sizeof text - 1) <= 0) return 0;
  const char* const number = std::strchr(text, '[');
  return number == nullptr ? 0 : static_cast<std::uint32_t>(std::strtoul(number + 1, nullptr, 10));
}

Mappings mappings_of(pid_t pid) {
  Mappings mappings;
  const std::string text = content_of(proc_folder(pid) + "/maps", mappings.error);
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    add_mapping(rest.substr(0, end), mappings);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return mappings;
}

bool pid_counts_here(const ledger::ProcessView& process) {
  const std::uint32_t here = pid_namespace_of(getpid());
  return process.pid_namespace == 0 || here == 0 || process.pid_namespace == here;
}

Life life_of(const ledger::ProcessView& process, ino_t inode) {
  if (which_boot(process.boot_id) == Boot::another) return Life::ended;
  if (pid_counts_here(process)) {
    return is_process_of(static_cast<pid_t>(process.pid), process, inode) ? Life::running
                                                                          : Life::ended;
  }
  // A process in an inner pid namespace has another pid here than in its ledger.
  for (const pid_t pid : all_pids()) {
    if (own_pid(pid) == process.pid && is_process_of(pid, process, inode)) return Life::running;
  }
  return pid_namespace_of(getpid()) == initial_pid_namespace ? Life::ended : Life::unknown;
}

std::optional<pid_t> lock_holder(ino_t inode) {
  int error = 0;
  const std::string text = content_of("/proc/locks", error);
  // A line is "1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF". A line with "->" is of a process
  // that waits for the lock.
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    next_word(line);
    if (next_word(line) != "FLOCK") continue;
    next_word(line);
    next_word(line);
    const std::string_view pid = next_word(line);
    const std::string_view file = next_word(line);
    if (file.substr(file.rfind(':') + 1) != std::to_string(inode)) continue;
    pid_t number = 0;
    std::from_chars(pid.data(), pid.data() + pid.size(), number);
    if (number > 0) return number;
  }
  return std::nullopt;
}

}  // namespace cuwarden
