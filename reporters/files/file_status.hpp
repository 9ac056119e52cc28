// stat() by its system call: glibc's own wrappers became versioned symbols in 2.33, and what is
// preloaded must not need a glibc newer than 2.28. On x86-64 the kernel fills glibc's struct stat.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cuwarden {

// Fill `result` as fstatat and fstat do, without new functions of glibc. They return 0, or -1 with
// errno set. `flags`: those of fstatat, AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH.
inline int status_at(int folder, const char* path, struct stat& result, int flags) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, &result, flags));
}
inline int status_of(int descriptor, struct stat& result) noexcept {
  return status_at(descriptor, "", result, AT_EMPTY_PATH);
}

// Lets the owner read and write a file that was made with mode 0600, whatever the umask took away.
// A file system without modes of its own (FAT) refuses, and the file is used as it is.
inline void undo_umask(int descriptor) noexcept {
  [[maybe_unused]] const int result = fchmod(descriptor, 0600);
}

}  // namespace cuwarden
