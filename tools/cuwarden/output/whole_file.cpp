#include "tools/cuwarden/output/whole_file.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

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

// Returns the permissions that the umask allows to a new file.
mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

// Returns the permissions of the file at the path; those of a new one if there is none.
mode_t mode_for(const std::string& path, mode_t new_mode) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : new_mode;
}

int write_content(const Descriptor& file, mode_t mode, FunctionRef<void(Output&)> write) {
  const auto output = std::make_unique<Output>(file.number());
  write(*output);
  if (const int error = output->finish()) return error;
  return fchmod(file.number(), mode) == 0 ? 0 : errno;
}

}  // namespace

int write_whole_file(const std::string& path, std::string_view text) {
  return write_whole_file(path, usual_mode(), [&](Output& output) { output.write(text); });
}

int write_whole_file(const std::string& path, mode_t new_mode, FunctionRef<void(Output&)> write) {
  std::string target;
  if (const int error = follow_links(path, target)) return error;
  struct stat status {};
  if (stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return S_ISDIR(status.st_mode) ? EISDIR : ENXIO;
  const std::string temporary = target + ".new-" + std::to_string(getpid());
  const Descriptor file = make_file(AT_FDCWD, temporary.c_str(), O_WRONLY);
  if (!file) return errno;
  int error = write_content(file, mode_for(target, new_mode), write);
  if (error == 0 && rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) unlink(temporary.c_str());
  return error;
}

}  // namespace cuwarden
