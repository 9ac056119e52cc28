#include "tools/cuwarden/ledgers/ledger_search.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <utility>

#include "reporters/words/error_text.hpp"
#include "tools/cuwarden/ledgers/running_processes.hpp"

namespace cuwarden {
namespace {

// Returns true if the process writes this ledger, false if it only reads it, as this command does.
bool is_of(const LedgerFile& file, pid_t pid) {
  const ledger::ProcessView process = file.reader().process();
  const auto stat = process_stat(pid);
  const std::uint32_t own = own_pid(pid);
  return stat && stat->start_ticks == process.start_ticks &&
         process.pid == (own != 0 ? own : static_cast<std::uint32_t>(pid));
}

// Returns why the unlocked ledger, whose process had locked it, is no ledger of a running process:
// a part of an error message.
std::string why_not_live(const LedgerFile& file, const ledger::ProcessView& process) {
  // A copy has no lock, whether its process runs or not.
  const Life life = file.is_copy() ? life_of(process, file.inode()) : Life::ended;
  if (life == Life::running) return about_copy_of_running(process);
  if (life == Life::unknown)
    return "it is a copy of a ledger, and " + about_process_out_of_sight(process);
  return "its process has ended; `cuwarden recover` makes the report";
}

}  // namespace

std::vector<std::string> usual_ledger_folders() {
  std::vector<std::string> wanted;
  const char* const chosen = std::getenv("CUWARDEN_LEDGER_DIR");
  if (chosen != nullptr && *chosen != '\0') wanted.emplace_back(chosen);
  const char* const report = std::getenv("CUWARDEN_REPORT");
  if (report != nullptr) {
    const std::string path(report);
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == path.npos ? "" : path.substr(0, slash + 1);
    if (!folder.empty() && folder.find('%') == folder.npos) wanted.push_back(folder);
  }
  wanted.emplace_back(".");
  const char* const temporary = std::getenv("TMPDIR");
  if (temporary != nullptr && *temporary == '/') wanted.emplace_back(temporary);
  wanted.emplace_back("/dev/shm");
  wanted.emplace_back("/tmp");

  std::vector<std::string> folders;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const std::string& folder : wanted) {
    struct stat status {};
    if (stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
    if (seen.insert({status.st_dev, status.st_ino}).second) folders.push_back(folder);
  }
  return folders;
}

std::vector<std::string> ledgers_in(const std::string& folder, int& error) {
  auto paths = files_in(folder, "cuwarden-ledger-", "", error);
  std::sort(paths.begin(), paths.end());  // the names are cuwarden-ledger-HOST-START-PID
  return paths;
}

std::vector<std::string> files_in(const std::string& folder, std::string_view start,
                                  std::string_view end, int& error) {
  std::vector<std::string> paths;
  error = 0;
  DIR* const opened = opendir(folder.c_str());
  if (opened == nullptr) {
    error = errno;
    return paths;
  }
  while (const dirent* entry = readdir(opened)) {
    const std::string name = entry->d_name;
    if (!name.starts_with(start) || !name.ends_with(end)) continue;
    const std::string path = folder + (folder.ends_with('/') ? "" : "/") + name;
    struct stat status {};
    if (lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) paths.push_back(path);
  }
  closedir(opened);
  return paths;
}

LiveLedger ledger_of(pid_t pid) {
  LiveLedger found;
  const std::string subject = "process " + std::to_string(pid);
  const auto stat = process_stat(pid);
  if (!stat || stat->ended) {
    found.error = "there is no " + subject;
    return found;
  }
  const Mappings mappings = mappings_of(pid);
  if (mappings.error != 0) {
    found.error = subject + " (" + stat->name +
                  ") cannot be inspected: " + error_text(mappings.error) +
                  (geteuid() == 0 ? "; this container or kernel hides it from root, too"
                                  : "; it belongs to another user, or forbids inspection "
                                    "(PR_SET_DUMPABLE): run this command as root");
    return found;
  }
  const std::string proc = proc_folder(pid);
  std::string why;
  for (const MappedLedger& mapped : mappings.ledgers) {
    // The path counts below the process's own root folder, since the process may run in a
    // container. A deleted file can still be opened in map_files, if this process has the right to.
    for (const std::string& path :
         {proc + "/root" + mapped.path, proc + "/map_files/" + mapped.range}) {
      const bool is_link = path.ends_with(mapped.range);
      if (mapped.deleted && !is_link) continue;
      auto file = LedgerFile::open(path, why, nullptr,
                                   is_link ? LedgerFile::Kind::kernel_link : LedgerFile::Kind::any);
      if (!file || !is_of(*file, pid)) continue;
      found.file = std::move(file);
      return found;
    }
  }
  found.has_none = mappings.ledgers.empty();
  found.error = subject + " (" + stat->name + ") ";
  if (!mappings.ledgers.empty() && mappings.ledgers.front().deleted) {
    found.error += "writes to a ledger that was deleted (" + mappings.ledgers.front().path +
                   "); only root can still read it";
  } else if (!mappings.ledgers.empty() && !why.empty()) {
    found.error += "has a ledger that cannot be read: " + why;
  } else if (mappings.has_shim) {
    found.error +=
        "runs under the shim but has no ledger: it has made no CUDA call yet, or there "
        "was no folder for one (its report will say so)";
  } else {
    found.error += "does not run under the shim; start it with `cuwarden run`, or with LD_PRELOAD";
  }
  return found;
}

LiveLedger live_ledger_at(const std::string& path) {
  LiveLedger found;
  std::string why;
  LedgerFile::Failure failure{};
  auto file = LedgerFile::open(path, why, &failure);
  if (!file) {
    found.has_none = failure == LedgerFile::Failure::unfinished || access(path.c_str(), F_OK) != 0;
    found.error = path + ": " + why;
    return found;
  }
  int no_locks = 0;
  const ledger::ProcessView process = file->reader().process();
  if (file->lock(no_locks) && process.lock_held) {
    found.has_none = true;
    found.error = path + ": " + why_not_live(*file, process);
    return found;
  }
  found.file = std::move(file);
  return found;
}

std::string about_copy_of_running(const ledger::ProcessView& process) {
  const std::string pid = std::to_string(process.pid);
  return "it is a copy of a ledger, and process " + pid + " is still running; `cuwarden snapshot " +
         (pid_counts_here(process) ? pid : "PID") + "` makes the report of the process itself";
}

std::string about_process_out_of_sight(const ledger::ProcessView& process) {
  return "process " + std::to_string(process.pid) +
         " belongs to a container that cannot be seen from here (use cuwarden in there, or as root "
         "outside)";
}

}  // namespace cuwarden
