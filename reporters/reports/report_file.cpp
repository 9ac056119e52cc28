#include "reporters/reports/report_file.hpp"

#include <stdio.h>  // renameat2
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "reporters/files/file_name_limits.hpp"
#include "reporters/files/file_status.hpp"
#include "reporters/files/unfinished_files.hpp"
#include "reporters/json/write_report.hpp"
#include "reporters/words/error_text.hpp"
#include "reporters/words/paths.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {
namespace {

constexpr int most_unfinished = 16;       // names that are tried for the unfinished file
constexpr unsigned most_names = 100'000;  // numbers that are tried before the ending of the name

// Returns the name of a report while it is written. It names the process that the report is about,
// by start and pid, because a pid is used again, also by other hosts and containers that share the
// folder. It also names the process that writes the report.
std::string unfinished_name(const ledger::ProcessView& about, std::uint32_t writer, int attempt) {
  return ".cuwarden-" + std::to_string(about.start_realtime_ns) + "-" + std::to_string(about.pid) +
         "-" + std::to_string(writer) + "-" + std::to_string(attempt) + ".tmp";
}

// Makes every missing folder above `path`. Returns 0 or an errno.
int make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != path.npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST) continue;
    struct stat status {};
    // Above an automounter or in a container, mkdir may refuse a folder that exists already.
    const int error = errno;
    if (status_at(AT_FDCWD, folder.c_str(), status, 0) != 0 || !S_ISDIR(status.st_mode)) {
      return error;
    }
  }
  return 0;
}

// The possible names of a report in its folder, which is open as `folder`.
struct Names {
  int folder;
  std::string base;
  std::size_t most_bytes;  // longest name, in bytes

  std::string with(unsigned number) const {
    return fitting_name(numbered_name(base, number), most_bytes);
  }
  bool is_taken(unsigned number) const {
    struct stat status {};
    return status_at(folder, with(number).c_str(), status, AT_SYMLINK_NOFOLLOW) == 0 ||
           errno != ENOENT;
  }
  // Returns a number above `taken` whose name was free a moment ago. Among thousands of reports
  // of one name this takes a few dozen looks, since the lowest numbers are taken first.
  unsigned free_after(unsigned taken) const {
    unsigned step = 1;
    while (taken + step < most_names && is_taken(taken + step)) {
      taken += step;
      step *= 2;
    }
    while (step > 1) {
      step /= 2;
      if (taken + step < most_names && is_taken(taken + step)) taken += step;
    }
    return taken + 1;
  }
};

// Renames `from` to `to` unless the name `to` is taken. Returns 0 or an errno; EEXIST: it is taken.
int rename_without_replacing(int folder, const char* from, const char* to) {
  if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0) return 0;
  // A file system that cannot do that (such as NFS) answers EINVAL or EOPNOTSUPP. A seccomp
  // filter that does not know the call answers EPERM or ENOSYS.
  const auto is_not_offered = [](int error) {
    return error == EINVAL || error == EOPNOTSUPP || error == EPERM || error == ENOSYS;
  };
  if (!is_not_offered(errno)) return errno;
  // A link never replaces a file, just as the call above.
  if (linkat(folder, from, folder, to, 0) == 0) {
    unlinkat(folder, from, 0);
    return 0;
  }
  if (!is_not_offered(errno) && errno != EMLINK) return errno;
  // The file system has no links. An empty file takes the name, and is then replaced.
  const Descriptor taken = make_file(folder, to, O_WRONLY);
  if (!taken) return errno;
  if (renameat(folder, from, folder, to) == 0) return 0;
  const int error = errno;
  unlinkat(folder, to, 0);
  return error;
}

}  // namespace

void ReportFile::adopt(const std::string& path) {
  struct stat status {};
  if (status_at(AT_FDCWD, path.c_str(), status, AT_SYMLINK_NOFOLLOW) != 0) return;
  path_ = path;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

void ReportFile::remove() noexcept {
  struct stat status {};
  if (!path_.empty() && status_at(AT_FDCWD, path_.c_str(), status, AT_SYMLINK_NOFOLLOW) == 0 &&
      status.st_dev == device_ && status.st_ino == inode_)
    unlink(path_.c_str());
  path_.clear();
}

void ReportFile::remove_unfinished(const ledger::ProcessView& process) noexcept try {
  const std::string folder(folder_of(process.report_path));
  for (int attempt = 0; attempt < most_unfinished; ++attempt) {
    unlink((folder + unfinished_name(process, process.pid, attempt)).c_str());
  }
} catch (...) {
  // Without memory a leftover file stays, which does no harm.
}

bool ReportFile::fail(int error, const char* what) {
  const char* advice = advice_;
  // Limits that another path would not lift.
  if (error == EMFILE || error == ENFILE) advice = "allow more open files (ulimit -n)";
  if (error == EFBIG) advice = "allow larger files (ulimit -f)";
  error_ = std::string("cannot ") + what + " the report " + wanted_ + ": " + error_text(error) +
           "; " + advice;
  return false;
}

bool ReportFile::write(const ledger::Reader& reader, const ReportOptions& options) noexcept {
  error_.clear();
  try {
    write_or_throw(reader, options);
  } catch (...) {
    error_ = "too little memory for a whole report";  // fits where no memory can be had
  }
  return error_.empty();
}

void ReportFile::write_or_throw(const ledger::Reader& reader, const ReportOptions& options) {
  const std::string& target = path_.empty() ? wanted_ : path_;
  if (const int error = make_folders(target)) {
    fail(error, "make the folder of");
    return;
  }
  const std::string folder_path(folder_of(target)), name(file_name(target));
  if (name.empty() || name == "." || name == "..") {
    fail(EISDIR, "write");
    return;
  }
  Descriptor folder = open_folder(AT_FDCWD, folder_path.c_str());
  if (!folder) {
    fail(errno, "open the folder of");
    return;
  }

  const ledger::ProcessView process = reader.process();
  std::string beside;
  Descriptor file;
  for (int attempt = 0; attempt < most_unfinished && !file; ++attempt) {
    beside = unfinished_name(process, static_cast<std::uint32_t>(getpid()), attempt);
    file = make_file(folder.number(), beside.c_str(), O_WRONLY);
    if (!file && errno != EEXIST) break;
  }
  if (!file) {
    fail(errno, "create");
    return;
  }
  const auto give_up = [&](int error, const char* what) {
    unlinkat(folder.number(), beside.c_str(), 0);
    fail(error, what);
  };

  // The file is found by its path, because another thread may have closed all descriptors
  // meanwhile.
  const std::string beside_path = folder_path + '/' + beside;
  const UnfinishedFile unfinished(beside_path);
  struct stat made {};
  if (status_at(AT_FDCWD, beside_path.c_str(), made, AT_SYMLINK_NOFOLLOW) != 0)
    status_of(file.number(), made);
  int error = 0;
  try {
    const auto output = std::make_unique<Output>(file.number(), made);
    if (output->is_same_file()) undo_umask(file.number());
    LedgerReport report(reader, options);
    ledger_is_damaged_ = report.ledger_is_damaged();
    leaks_ = report.leaks();
    write_report_json(report, *output, [&](std::size_t rows, std::size_t all) {
      if (options.told) options.told("writing rows of the report", rows, all);
    });
    error = output->finish();
  } catch (...) {
    unlinkat(folder.number(), beside.c_str(), 0);
    throw;
  }
  if (error == EBADF) {
    // The program has closed the descriptors, and their numbers may belong to its own files by
    // now.
    file.release();
    folder.release();
    unlink(beside_path.c_str());
    fail(error, "write");
    return;
  }
  struct stat status {};
  if (error == 0 && status_of(file.number(), status) != 0) error = errno;
  if (error != 0) {
    give_up(error, "write");
    return;
  }

  // The process's own earlier report is replaced, unless another file has taken its path.
  struct stat present {};
  if (!path_.empty() &&
      status_at(folder.number(), name.c_str(), present, AT_SYMLINK_NOFOLLOW) == 0 &&
      present.st_dev == device_ && present.st_ino == inode_) {
    if (renameat(folder.number(), beside.c_str(), folder.number(), name.c_str()) != 0) {
      give_up(errno, "replace");
      return;
    }
    inode_ = status.st_ino;
    return;
  }

  Names names{folder.number(), std::string(file_name(wanted_)), name_limit(folder.number())};
  constexpr unsigned one_by_one = 16;  // numbers tried before the free ones are searched for
  // Processes that end together find one free number; each failure spreads them further.
  constexpr unsigned widest_spread = 4096;
  const auto pid = static_cast<unsigned>(getpid());
  unsigned number = 0, spread = 1;
  do {
    error = rename_without_replacing(folder.number(), beside.c_str(), names.with(number).c_str());
    if (error == ENAMETOOLONG && names.most_bytes > shortest_name_limit) {
      // Some file systems accept only shorter names than they state.
      names.most_bytes = shortest_name_limit;
      error = EEXIST;
    } else if (error == EEXIST && number < one_by_one) {
      ++number;
    } else if (error == EEXIST) {
      number = names.free_after(number) + pid % spread;
      spread = std::min(spread * 2, widest_spread);
    }
  } while (error == EEXIST && number < most_names);
  if (error != 0) {
    give_up(error, "rename");
    return;
  }
  number_ = number;
  path_ = wanted_.substr(0, wanted_.size() - names.base.size()) + names.with(number);
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

}  // namespace cuwarden
