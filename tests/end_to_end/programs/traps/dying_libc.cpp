// Preloaded beside the shim: kills the process in the midst of its report, as a scheduler does:
// once the first report has its name, before the call that DIE_BEFORE counts (1: the next one).
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "../replaced_imports.hpp"

namespace {

std::atomic<bool> first_report{false};
std::atomic<int> calls{0};

void next_call() {
  if (!first_report) return;
  const char* const last = std::getenv("DIE_BEFORE");
  if (last != nullptr && ++calls == std::atoi(last)) syscall(SYS_kill, getpid(), SIGKILL);
}

// INTERRUPT_AT: the number of the write to a report, from 1, before which the thread is sent
// SIGUSR1.
void next_write() {
  static std::atomic<int> writes{0};
  const char* const at = std::getenv("INTERRUPT_AT");
  if (at != nullptr && ++writes == std::atoi(at)) raise(SIGUSR1);
}

int renamed(long result, const char* to) {
  if (std::strstr(to, ".json") != nullptr) first_report = true;
  return static_cast<int>(result);
}

int dying_open(const char* path, int flags, int mode) {
  next_call();
  return static_cast<int>(syscall(SYS_open, path, flags, mode));
}
int dying_openat(int folder, const char* path, int flags, int mode) {
  next_call();
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}
ssize_t dying_write(int descriptor, const void* bytes, size_t count) {
  if (count > 256) next_write();
  next_call();
  return syscall(SYS_write, descriptor, bytes, count);
}
int dying_unlinkat(int folder, const char* path, int flags) {
  next_call();
  return static_cast<int>(syscall(SYS_unlinkat, folder, path, flags));
}
int dying_renameat(int from_folder, const char* from, int to_folder, const char* to) {
  next_call();
  return renamed(syscall(SYS_renameat, from_folder, from, to_folder, to), to);
}
int dying_renameat2(int from_folder, const char* from, int to_folder, const char* to,
                    unsigned int flags) {
  next_call();
  return renamed(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags), to);
}

[[gnu::constructor]] void answer_the_shim() {
  const auto replace = [](const char* name, auto* function) {
    replace_import_of_shim(name, reinterpret_cast<void*>(function));
  };
  replace("open", dying_open);
  replace("openat64", dying_openat);
  replace("write", dying_write);
  replace("unlinkat", dying_unlinkat);
  replace("renameat", dying_renameat);
  replace("renameat2", dying_renameat2);
}

}  // namespace
