#include "tools/cuwarden/output/whole_file.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "reporters/files/output.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

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

// Returns the permissions that the file at the path has, or that a new one gets.
mode_t mode_for(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return status.st_mode & 07777;
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

int write_text(const Descriptor& file, mode_t mode, std::string_view text) {
  const auto output = std::make_unique<Output>(file.number());
  output->write(text);
  if (const int error = output->finish()) return error;
  return fchmod(file.number(), mode) == 0 ? 0 : errno;
}

}  // namespace

int write_whole_file(const std::string& path, std::string_view text) {
  std::string target;
  if (const int error = follow_links(path, target)) return error;
  struct stat status {};
  if (stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return S_ISDIR(status.st_mode) ? EISDIR : ENXIO;
  const std::string temporary = target + ".new-" + std::to_string(getpid());
  const Descriptor file = make_file(AT_FDCWD, temporary.c_str(), O_WRONLY);
  if (!file) return errno;
  int error = write_text(file, mode_for(target), text);
  if (error == 0 && rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) unlink(temporary.c_str());
  return error;
}

}  // namespace cuwarden
