// Preloaded into the command: a signal comes within one of its calls that name a file. The variable
// INTERRUPTED_CALL names the call, such as "renameat"; with REFUSE_LINKS, linkat() fails as on a
// file system without links.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <string_view>

namespace {

// Sends SIGTERM if this is the call that is interrupted.
void interrupt(std::string_view call) {
  const char* const interrupted = getenv("INTERRUPTED_CALL");
  if (interrupted != nullptr && call == interrupted) kill(getpid(), SIGTERM);
}

}  // namespace

extern "C" {

// The flags of the build choose the symbol, openat64 or openat, here as in the command.
int openat(int folder, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (std::string_view(path).find(".new-") != std::string_view::npos) interrupt("openat");
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  interrupt("renameat");
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  interrupt("renameat2");
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  interrupt("linkat");
  if (getenv("REFUSE_LINKS") == nullptr)
    return static_cast<int>(syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
  errno = EPERM;
  return -1;
}

}  // extern "C"
