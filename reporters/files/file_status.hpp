// stat() by its system call. glibc's own wrappers became versioned symbols in 2.33, and the
// preloaded library must not need a glibc newer than 2.28. On x86-64 the kernel fills glibc's
// struct stat.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

namespace cuwarden {

// Fills `result` with a file's status, as fstatat() does, but needs no function of a new glibc.
// Returns 0, or -1 with errno set. `folder`: descriptor of the folder in which a relative `path`
// begins, or AT_FDCWD. `flags`: AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, or 0.
inline int status_at(int folder, const char* path, struct stat& result, int flags) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, &result, flags));
}
// Fills `result` with the status of the open file, as fstat() does, but needs no function of a new
// glibc. Returns 0, or -1 with errno set.
inline int status_of(int descriptor, struct stat& result) noexcept {
  return status_at(descriptor, "", result, AT_EMPTY_PATH);
}
// True if `path` names a folder, also through symbolic links.
inline bool is_folder(const std::string& path) noexcept {
  struct stat status;
  return status_at(AT_FDCWD, path.c_str(), status, 0) == 0 && S_ISDIR(status.st_mode);
}

// Sets the mode of an open file to 0600, so that its owner can read and write the file even if the
// umask forbade that. A failure is ignored: file systems without modes (FAT) refuse.
inline void undo_umask(int descriptor) noexcept {
  [[maybe_unused]] const int result = fchmod(descriptor, 0600);
}

}  // namespace cuwarden
