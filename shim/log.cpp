#include "shim/log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <memory>
#include <new>
#include <string>

#include "reporters/printable.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/uncancelled.hpp"

namespace cuwarden::shim {
namespace {

// What descriptor 2 was when the shim was loaded; 0, 0: closed.
constinit dev_t stderr_device = 0;
constinit ino_t stderr_inode = 0;

// A program may close descriptor 2 and get the number back for a data file or a connection, which
// a message of ours would damage. Nothing tells that for certain from a standard error that was
// redirected on purpose, so: what was there at the start is fine, and so is a terminal, a pipe, a
// device such as /dev/null, or a file opened for appending, as log files are. Anything else gets
// nothing: a lost message is the lesser harm.
bool is_for_messages(int fd) {
  struct stat now {};
  if (syscall(SYS_fstat, fd, &now) != 0) return false;
  if (now.st_ino == stderr_inode && now.st_dev == stderr_device) return true;
  if (S_ISCHR(now.st_mode) || S_ISFIFO(now.st_mode)) return true;
  return S_ISREG(now.st_mode) && (fcntl(fd, F_GETFL) & O_APPEND) != 0;
}

// Waits a little until something can be written.
bool has_room(int fd) {
  constexpr int patience_ms = 100;
  pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
  const int ready = poll(&room, 1, patience_ms);
  if (ready >= 0 || errno != EINVAL) return ready == 1 && (room.revents & POLLOUT) != 0;
  // Not even one descriptor may be asked about where none may be opened (ulimit -n 0).
  if (fd >= FD_SETSIZE) return false;
  fd_set writable;
  FD_ZERO(&writable);
  FD_SET(fd, &writable);
  timeval patience{.tv_sec = 0, .tv_usec = patience_ms * 1000};
  return select(fd + 1, nullptr, &writable, nullptr, &patience) == 1;
}

// A pipe whose reader has gone would kill the host by SIGPIPE, and a full one would hold it up:
// then the message is lost.
void write_without_harm(int fd, const char* text, std::size_t bytes) {
  if (!has_room(fd)) return;
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  sigprocmask(SIG_BLOCK, &pipe, &before);  // of this thread; pthread_sigmask is newer
  const bool failed = write(fd, text, bytes) < 0 && errno == EPIPE;
  if (failed && sigismember(&pending, SIGPIPE) == 0) {
    constexpr timespec at_once{};
    sigtimedwait(&pipe, nullptr, &at_once);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

// Writes each message with one write(2), so that lines of several processes do not mix, and holds
// no descriptor in between: the program may close or reuse any.
class WholeLineSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit WholeLineSink(const char* file) : file_(file) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    int fd = STDERR_FILENO;
    // Through no symbolic link: in a folder that others may write to, it could lead to a file of
    // their choosing.
    if (*file_ != '\0')
      fd = open(file_, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (fd < 0) fd = STDERR_FILENO;
    if (fd == STDERR_FILENO && !is_for_messages(fd)) return;
    write_without_harm(fd, line.data(), line.size());
    if (fd != STDERR_FILENO) close(fd);
  }
  void flush_() override {}

  const char* file_;
};

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::off:
      return spdlog::level::off;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::debug:
      return spdlog::level::debug;
  }
  return spdlog::level::warn;
}

// Storage that outlives everything: the logger is used after static destructors have run.
alignas(spdlog::logger) constinit unsigned char storage[sizeof(spdlog::logger)] = {};
constinit std::atomic<spdlog::logger*> logger{nullptr};

// What comes before the settings are read, as by functions of cuwarden.h: who may hear it, and
// where, is not known yet. What does not fit is lost.
constinit FutexLock early_lock;
constinit char early_lines[2048] = {};
constinit std::size_t early_bytes = 0;
constinit pid_t early_process = 0;  // a forked child has no part in them

void keep_for_later(std::string_view line) {
  const Locked locked(early_lock);
  if (early_process != getpid()) early_bytes = 0;
  early_process = getpid();
  if (!locked || line.size() + 1 > sizeof early_lines - early_bytes) return;
  line.copy(early_lines + early_bytes, line.size());
  early_bytes += line.size();
  early_lines[early_bytes++] = '\n';
}

void log(spdlog::level::level_enum level, std::string_view line) noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  spdlog::logger* const present = logger.load(std::memory_order_acquire);
  if (present != nullptr && !present->should_log(level)) return;
  try {
    // Values of variables, names and paths are in it. None of them acts on a terminal, or begins a
    // line that looks like another message.
    const std::string shown = printable(std::string(line));
    if (present != nullptr)
      present->log(level, spdlog::string_view_t(shown.data(), shown.size()));
    else if (level == spdlog::level::warn)
      keep_for_later(shown);
  } catch (...) {
    // No memory to format a message with: there is nobody left to tell.
    return;
  }
}

}  // namespace

void remember_stderr() noexcept {
  const ErrnoGuard keep;
  struct stat status {};
  if (syscall(SYS_fstat, STDERR_FILENO, &status) != 0) return;
  stderr_device = status.st_dev;
  stderr_inode = status.st_ino;
}

void set_up_log(const Settings& settings) noexcept {
  const ErrnoGuard keep;
  logger.store(nullptr);  // a forked child's, or what its parent had half made
  try {
    auto sink = std::make_shared<WholeLineSink>(settings.log_file);
    sink->set_formatter(std::make_unique<spdlog::pattern_formatter>("cuwarden: %v"));
    auto* made = new (storage) spdlog::logger("cuwarden", std::move(sink));
    made->set_level(level_of(settings.log_level));
    made->set_error_handler([](const std::string&) {});
    logger.store(made, std::memory_order_release);
  } catch (...) {
    return;
  }
  char lines[sizeof early_lines];
  std::size_t bytes = 0;
  if (const Locked locked(early_lock); locked) {
    bytes = early_process == getpid() ? early_bytes : 0;
    std::string_view(early_lines, bytes).copy(lines, bytes);
    early_bytes = 0;
  }
  for (std::string_view rest(lines, bytes); !rest.empty(); rest.remove_prefix(rest.find('\n') + 1))
    log_warn(rest.substr(0, rest.find('\n')));
}

void log_error(std::string_view line) noexcept { log(spdlog::level::err, line); }
void log_warn(std::string_view line) noexcept { log(spdlog::level::warn, line); }
void log_info(std::string_view line) noexcept { log(spdlog::level::info, line); }
void log_debug(std::string_view line) noexcept { log(spdlog::level::debug, line); }

}  // namespace cuwarden::shim
