#include "tools/cuwarden/output/whole_file.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "reporters/files/file_status.hpp"
#include "reporters/words/error_text.hpp"
#include "tools/cuwarden/output/progress.hpp"

namespace cuwarden {
namespace {

// Sets `target` to the path of the file to which symbolic links at the path lead. Returns 0, or the
// errno of a link that leads nowhere.
int follow_links(const std::string& path, std::string& target) {
  target = path;
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return 0;
  const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
  if (!real) return errno;
  target = real.get();
  return 0;
}

// Returns the permissions that the file at the path has, or that a new one gets: `new_mode` or, if
// that is null, those that the umask allows.
mode_t mode_for(const std::string& path, std::optional<mode_t> new_mode) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return status.st_mode & 07777;
  if (new_mode) return *new_mode;
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

// True if the path leads to a pipe or a character device, such as a terminal. Their bytes are read
// once; those of a block device are the file system of a disk, which output would destroy.
bool takes_output(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode));
}

}  // namespace

bool is_stream(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

void forbid_progress_beside(const std::string& output) {
  struct stat status {};
  if (stat(output.c_str(), &status) != 0 || !S_ISCHR(status.st_mode)) return;
  const Descriptor device(open(output.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (device && isatty(device.number()) == 1) forbid_progress();
}

WholeFile::WholeFile(const std::string& path, std::optional<mode_t> new_mode)
    : new_mode_(new_mode) {
  if (is_stream(path)) {
    if (!takes_output(path)) {
      error_ = ENXIO;
      return;
    }
    file_ = Descriptor(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!file_) {
      error_ = errno;
      return;
    }
    output_ = std::make_unique<Output>(file_.number());
    forbid_progress_beside(path);
    return;
  }
  error_ = follow_links(path, target_);
  if (error_ != 0) return;
  if (is_folder(target_)) {
    error_ = EISDIR;
    return;
  }
  temporary_ = target_ + ".new-" + std::to_string(getpid());
  {
    const NoInterruption held;
    file_ = make_file(AT_FDCWD, temporary_.c_str(), O_WRONLY);
    error_ = file_ ? 0 : errno;
    if (file_) unfinished_.emplace(temporary_);
  }
  if (file_) output_ = std::make_unique<Output>(file_.number());
}

WholeFile::~WholeFile() {
  if (output_ != nullptr && !temporary_.empty()) unlink(temporary_.c_str());
}

int WholeFile::finish() {
  error_ = output_->finish();
  if (temporary_.empty()) {
    if (error_ == EPIPE) error_ = 0;
    return error_;
  }
  if (error_ == 0 && fchmod(file_.number(), mode_for(target_, new_mode_)) != 0) error_ = errno;
  if (error_ == 0 && rename(temporary_.c_str(), target_.c_str()) != 0) error_ = errno;
  if (error_ == 0) {
    output_.reset();
    unfinished_.reset();
  }
  return error_;
}

int write_whole_file(const std::string& path, std::string_view text) {
  WholeFile file(path);
  if (file.error() != 0) return file.error();
  file.output().write(text);
  return file.finish();
}

std::string line_about_unwritable(const std::string& path, int error, std::string_view option) {
  return "cannot write " + path + ": " + error_text(error) + "; give a path that can be written (" +
         std::string(option) + "), or make room";
}

}  // namespace cuwarden
