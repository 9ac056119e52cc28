#include "shim/support/message_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

#include "reporters/words/error_text.hpp"
#include "reporters/words/printable.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden::shim {
namespace {

// The file behind descriptor 2 when the shim was loaded; 0 and 0 if it was closed.
constinit dev_t stderr_device = 0;
constinit ino_t stderr_inode = 0;

// True if messages may be written to the descriptor. A program may close descriptor 2 and get the
// number back for a data file or a connection, which a message would damage. A standard error that
// was redirected on purpose looks the same. So messages go only to the file that was there at the
// start, a terminal, a pipe, or a device such as /dev/null. They also go to files that are opened
// for appending, as log files are. A lost message is the lesser harm.
bool is_for_messages(int fd) {
  struct stat now {};
  if (syscall(SYS_fstat, fd, &now) != 0) return false;
  if (now.st_ino == stderr_inode && now.st_dev == stderr_device) return true;
  if (S_ISCHR(now.st_mode) || S_ISFIFO(now.st_mode)) return true;
  return S_ISREG(now.st_mode) && (fcntl(fd, F_GETFL) & O_APPEND) != 0;
}

// The longest time that a message waits for its reader.
constexpr int patience_ms = 100;

// Waits up to `limit_ms` milliseconds until something can be written.
bool has_room(int fd, int limit_ms) {
  pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
  const int ready = poll(&room, 1, limit_ms);
  if (ready >= 0 || errno != EINVAL) return ready == 1 && (room.revents & POLLOUT) != 0;
  // poll() fails with EINVAL if the process may open no descriptor (ulimit -n 0); select() does
  // not.
  if (fd >= FD_SETSIZE) return false;
  fd_set writable;
  FD_ZERO(&writable);
  FD_SET(fd, &writable);
  timeval patience{.tv_sec = 0, .tv_usec = limit_ms * 1000};
  return select(fd + 1, nullptr, &writable, nullptr, &patience) == 1;
}

// Writes a piece. If a pipe has no room for the piece, it is not written, so that the host does not
// wait. Returns false if the piece was not written whole.
bool write_piece(int fd, std::string_view piece, int limit_ms) {
  return has_room(fd, limit_ms) &&
         ::write(fd, piece.data(), piece.size()) == static_cast<ssize_t>(piece.size());
}

void write_to_stderr(std::string_view text) {
  if (is_for_messages(STDERR_FILENO)) write_without_harm(STDERR_FILENO, text);
}

}  // namespace

void write_without_harm(int fd, std::string_view text) {
  // A pipe that select() reports as writable takes this many bytes without waiting.
  constexpr std::size_t most_at_once = PIPE_BUF;
  sigset_t raised, before, pending;
  sigemptyset(&raised);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGTTOU}) sigaddset(&raised, signal);
  sigpending(&pending);
  // For this thread; pthread_sigmask is in libc only since glibc 2.32.
  sigprocmask(SIG_BLOCK, &raised, &before);
  errno = 0;
  // Only the first piece waits for the reader: a reader that takes it takes the rest.
  for (int limit_ms = patience_ms; !text.empty(); limit_ms = 0) {
    const std::string_view piece = text.substr(0, most_at_once);
    if (!write_piece(fd, piece, limit_ms)) break;
    text.remove_prefix(piece.size());
  }
  const int signal = errno == EPIPE ? SIGPIPE : errno == EFBIG ? SIGXFSZ : 0;
  if (signal != 0 && sigismember(&pending, signal) == 0) {
    constexpr timespec at_once{};
    sigemptyset(&raised);
    sigaddset(&raised, signal);
    sigtimedwait(&raised, nullptr, &at_once);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

void remember_stderr() noexcept {
  const ErrnoGuard keep;
  struct stat status {};
  if (syscall(SYS_fstat, STDERR_FILENO, &status) != 0) return;
  stderr_device = status.st_dev;
  stderr_inode = status.st_ino;
}

MessageOutput::MessageOutput(const char* file) noexcept : file_(file) {
  const auto named = descriptor_named(file);
  if (!named) return;
  named_descriptor_ = *named;
  struct stat status {};
  if (syscall(SYS_fstat, named_descriptor_, &status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

bool MessageOutput::is_still_writable() const noexcept {
  struct stat now {};
  return inode_ != 0 && syscall(SYS_fstat, named_descriptor_, &now) == 0 && now.st_dev == device_ &&
         now.st_ino == inode_ && (fcntl(named_descriptor_, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

void MessageOutput::complain_if_unusable() noexcept {
  if (*file_ == '\0' || named_descriptor_ == STDERR_FILENO) return;
  if (named_descriptor_ >= 0) {
    if (!is_still_writable()) complain(EBADF);
  } else if (!open_to_append(file_, false) && errno != ENOENT) {
    complain(errno);
  }
}

bool MessageOutput::write_to_file(std::string_view line) noexcept {
  if (named_descriptor_ >= 0) {
    errno = EBADF;
    if (!is_still_writable()) return false;
    write_without_harm(named_descriptor_, line);
    return true;
  }
  const Descriptor file = open_to_append(file_, true);
  if (!file) return false;
  write_without_harm(file.number(), line);
  return true;
}

void MessageOutput::write(std::string_view line) noexcept {
  if (is_confined()) return;
  const bool is_elsewhere = *file_ != '\0' && named_descriptor_ != STDERR_FILENO;
  if (is_elsewhere) {
    if (write_to_file(line)) return;
    complain(errno);
  }
  write_to_stderr(line);
}

void MessageOutput::complain(int error) noexcept try {
  if (complained_.exchange(true, std::memory_order_relaxed)) return;
  const char* const reason = error == EBADF
                                 ? "it is closed, opened for reading, or another file by now"
                                 : error_text(error);
  write_to_stderr("cuwarden: CUWARDEN_LOG: no message can go to " + printable(file_) + ": " +
                  reason +
                  "; use a file, a terminal, /dev/stdout, /dev/stderr, /dev/null or /dev/fd/N. "
                  "Messages go to stderr.\n");
} catch (...) {
}  // no memory for the line

}  // namespace cuwarden::shim
