// Opens all files of cuwarden (tests/lint/opened_by_open_file.py). A path given here may have been
// chosen by a user, or replaced by another user who may write to its folder. So no open waits, and
// no file is read or written before its type is known to be an allowed one:
//
//   read      regular files only, also those of /proc and /sys; symbolic links are followed
//   written   regular files, terminals and /dev/null; never through a symbolic link
//
// A path that leads to anything else (a FIFO, a socket, a device) fails with ENXIO, a folder with
// EISDIR. A confined thread opens nothing (confinement.hpp): EPERM. No descriptor has a number
// below 3 (standard_numbers.hpp), and a program that is started inherits none. Nothing is
// allocated.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/files/standard_numbers.hpp"

namespace cuwarden {

// The descriptor of an open file or folder, or nothing (-1). The destructor closes the file.
class Descriptor {
 public:
  Descriptor() = default;
  // Takes over the descriptor `number`, which the destructor closes. Negative: nothing is open.
  explicit Descriptor(int number) noexcept : number_(number) {}
  // Takes over the file that the other object has open; the other object has none open afterwards.
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  // Closes this object's file, if one is open, and takes over the other object's.
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  explicit operator bool() const noexcept { return number_ >= 0; }  // True if a file is open.
  // Returns the number of the open descriptor; -1 if nothing is open.
  int number() const noexcept { return number_; }
  // Gives the open descriptor up to the caller, who must close it, and returns its number. Returns
  // -1 if nothing is open.
  int release() noexcept { return std::exchange(number_, -1); }
  // Closes the file, if one is open; nothing is open afterwards. Keeps errno.
  void reset() noexcept {
    if (number_ < 0) return;
    const ErrnoGuard keep;
    close(release());
  }

  // Reads the file's next bytes into `into`, at most as many as fit, as read(2) does. Returns the
  // number of bytes read; 0 at the end of the file; -1, with errno set, on an error. Goes on if a
  // signal interrupts the read.
  ssize_t read_some(std::span<char> into) const noexcept {
    ssize_t got = -1;
    do {
      got = read(number_, into.data(), into.size());
    } while (got < 0 && errno == EINTR);
    return got;
  }

 private:
  int number_ = -1;  // Number of the open descriptor; -1: nothing is open.
};

// Treatment of a path whose last component is a symbolic link: the link is followed, or opening
// fails. Links before the last component are always followed.
enum class Links { followed, refused };

namespace detail {

// Fills `status` with the facts about the file that is open as `descriptor`, as fstat does. Returns
// false, with errno set, on failure.
inline bool status_of(int descriptor, struct stat& status) noexcept {
  return syscall(SYS_fstat, descriptor, &status) == 0;  // glibc's function is newer than 2.28.
}

// Opens `path`, relative to the descriptor `folder`, with a descriptor number of 3 or more. `flags`
// and `mode`: as for openat(2); O_CLOEXEC and O_NOCTTY are added. Returns an empty Descriptor, with
// errno set, on failure. A confined thread (one that a seccomp filter of the program restricts)
// opens nothing: EPERM.
inline Descriptor open_high(int folder, const char* path, int flags, mode_t mode = 0) noexcept {
  if (is_confined()) {
    errno = EPERM;
    return {};
  }
  const StandardNumbersHeld held;
  Descriptor opened(openat(folder, path, flags | O_CLOEXEC | O_NOCTTY, mode));
  if (!opened || opened.number() >= StandardNumbersHeld::count) return opened;
  // The program has closed a standard stream meanwhile, and the file got its number. So the
  // descriptor is replaced by one with a higher number.
  return Descriptor(fcntl(opened.number(), F_DUPFD_CLOEXEC, StandardNumbersHeld::count));
}

// Sets errno because a file is of a type that must not be opened: to EISDIR for a folder, otherwise
// to ENXIO. `mode`: stat::st_mode of the file. Always returns an empty Descriptor, for the caller
// to return.
inline Descriptor refused(mode_t mode) noexcept {
  errno = S_ISDIR(mode) ? EISDIR : ENXIO;
  return {};
}

}  // namespace detail

// Opens a regular file for reading. `path` is relative to the descriptor `folder`, or to the
// current folder for AT_FDCWD. `links`: tells if the last part of `path` may be a symbolic link.
// Returns an empty Descriptor, with errno set, on failure, also for a file that is not regular.
inline Descriptor open_to_read(int folder, const char* path,
                               Links links = Links::followed) noexcept {
  Descriptor file = detail::open_high(
      folder, path, O_RDONLY | O_NONBLOCK | (links == Links::refused ? O_NOFOLLOW : 0));
  struct stat status {};
  if (!file || (detail::status_of(file.number(), status) && S_ISREG(status.st_mode))) return file;
  return detail::refused(status.st_mode);
}
// Opens a regular file for reading. `path` is absolute, or relative to the current folder. `links`:
// tells if the last part of `path` may be a symbolic link. Returns an empty Descriptor, with errno
// set, on failure, also for a file that is not regular.
inline Descriptor open_to_read(const char* path, Links links = Links::followed) noexcept {
  return open_to_read(AT_FDCWD, path, links);
}

// Opens the folder `path`, so that paths relative to the folder can be opened. Its entries cannot
// be listed. `path` is relative to the descriptor `above`, or to the current folder for AT_FDCWD.
// `links`: tells if the last part of `path` may be a symbolic link. Returns an empty Descriptor,
// with errno set, on failure.
inline Descriptor open_folder(int above, const char* path, Links links = Links::followed) noexcept {
  return detail::open_high(above, path,
                           O_PATH | O_DIRECTORY | (links == Links::refused ? O_NOFOLLOW : 0));
}

// Opens the folder `path`, so that its entries can be listed by each_folder_entry(). `path` is
// relative to the descriptor `above`, or to the current folder for AT_FDCWD. Returns an empty
// Descriptor, with errno set, on failure.
inline Descriptor open_folder_to_list(int above, const char* path) noexcept {
  return detail::open_high(above, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
}

// Opens the file `path` (a regular file, a terminal or /dev/null) for writing at its end. If the
// file is missing and `may_make` is true, makes it, with mode 0600. Returns an empty Descriptor,
// with errno set, on failure, also for other types of files and for a symbolic link.
inline Descriptor open_to_append(const char* path, bool may_make) noexcept {
  Descriptor file = detail::open_high(
      AT_FDCWD, path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOFOLLOW | (may_make ? O_CREAT : 0),
      0600);
  struct stat status {};
  if (!file) return file;
  if (detail::status_of(file.number(), status)) {
    if (S_ISREG(status.st_mode)) return file;
    termios terminal{};
    if (S_ISCHR(status.st_mode) && (status.st_rdev == makedev(1, 3) ||  // /dev/null
                                    tcgetattr(file.number(), &terminal) == 0))
      return file;
  }
  return detail::refused(status.st_mode);
}

// Makes a file with mode 0600 and opens it. `path` is relative to the descriptor `folder`, or to
// the current folder for AT_FDCWD. `access`: O_WRONLY or O_RDWR. Returns an empty Descriptor, with
// errno set, on failure; EEXIST if the path exists.
inline Descriptor make_file(int folder, const char* path, int access) noexcept {
  return detail::open_high(folder, path, access | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
}

// Opens the existing regular file `path` for reading and writing. Returns an empty Descriptor, with
// errno set, on failure, also for other types of files and for a symbolic link.
inline Descriptor open_to_change(const char* path) noexcept {
  Descriptor file = detail::open_high(AT_FDCWD, path, O_RDWR | O_NONBLOCK | O_NOFOLLOW);
  struct stat status {};
  if (!file || (detail::status_of(file.number(), status) && S_ISREG(status.st_mode))) return file;
  return detail::refused(status.st_mode);
}

// Returns the descriptor number that a path like /dev/stdout, /dev/fd/5 or /proc/self/fd/5 names;
// none for other paths. The caller can use that descriptor instead of opening the path. This
// function does not check that the descriptor is open.
inline std::optional<int> descriptor_named(std::string_view path) noexcept {
  if (path == "/dev/stdin") return 0;
  if (path == "/dev/stdout") return 1;
  if (path == "/dev/stderr") return 2;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    path.remove_prefix(folder.size());
    int number = 0;
    for (const char c : path) {
      if (c < '0' || c > '9' || number > 10'000'000) return std::nullopt;
      number = number * 10 + (c - '0');
    }
    return path.empty() ? std::nullopt : std::optional(number);
  }
  return std::nullopt;
}

}  // namespace cuwarden
