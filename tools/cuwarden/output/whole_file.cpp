#include "tools/cuwarden/output/whole_file.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

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

}  // namespace

WholeFile::WholeFile(const std::string& path, std::optional<mode_t> new_mode)
    : new_mode_(new_mode) {
  error_ = follow_links(path, target_);
  if (error_ != 0) return;
  struct stat status {};
  if (stat(target_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    error_ = S_ISDIR(status.st_mode) ? EISDIR : ENXIO;
    return;
  }
  temporary_ = target_ + ".new-" + std::to_string(getpid());
  unfinished_.emplace(temporary_);
  file_ = make_file(AT_FDCWD, temporary_.c_str(), O_WRONLY);
  if (file_)
    output_ = std::make_unique<Output>(file_.number());
  else
    error_ = errno;
    unfinished_.reset();
  }
}

WholeFile::~WholeFile() {
  if (output_ != nullptr) unlink(temporary_.c_str());
}

int WholeFile::finish() {
  error_ = output_->finish();
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

}  // namespace cuwarden
