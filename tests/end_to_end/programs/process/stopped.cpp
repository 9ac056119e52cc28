// Preloaded into a command: stops it by SIGSTOP right before it first opens a path that contains
// the text STOP_BEFORE. So a test can change the world at that moment, and then send SIGCONT.
#include <dlfcn.h>
#include <fcntl.h>

#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace {

void stop_before(const char* path) {
  static const char* const text = std::getenv("STOP_BEFORE");
  static bool has_stopped = false;
  if (has_stopped || text == nullptr || std::strstr(path, text) == nullptr) return;
  has_stopped = true;
  std::raise(SIGSTOP);
}

}  // namespace

extern "C" int openat64(int folder, const char* path, int flags, ...) {
  using OpenAt = int (*)(int, const char*, int, ...);
  static const auto real = reinterpret_cast<OpenAt>(dlsym(RTLD_NEXT, "openat64"));
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);  // is not used unless the flags say that it is there
  va_end(rest);
  stop_before(path);
  return real(folder, path, flags, mode);
}
