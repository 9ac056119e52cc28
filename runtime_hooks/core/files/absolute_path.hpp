// Makes the paths of files independent of the current folder.
#pragma once

#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

namespace cuwarden {

// Returns the path with the current folder before it, unless it is absolute. If the current folder
// has no path, because it was removed or lies too deep, returns the path as it is.
inline std::string absolute_path(std::string path) {
  // libc's getcwd is not used, because it walks up through all folders if the folder has no path.
  char folder[PATH_MAX];
  if (path.starts_with('/') || syscall(SYS_getcwd, folder, sizeof folder) <= 0 || folder[0] != '/')
    return path;
  return std::string(folder) + "/" + path;
}

}  // namespace cuwarden
