#include "reporters/reports/report_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "reporters/files/file_status.hpp"
#include "reporters/files/unfinished_files.hpp"
#include "reporters/json/write_report.hpp"
#include "reporters/reports/free_name.hpp"
#include "reporters/words/error_text.hpp"
#include "reporters/words/paths.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {
namespace {

constexpr int most_unfinished = 16;  // names that are tried for the unfinished file

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

  const std::string base(file_name(wanted_));
  const FreeName taken = rename_to_free_name(folder.number(), beside.c_str(), base);
  if (taken.error != 0) {
    give_up(taken.error, "rename");
    return;
  }
  number_ = taken.number;
  path_ = wanted_.substr(0, wanted_.size() - base.size()) + taken.name;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

}  // namespace cuwarden
