// Functions that are newer than glibc 2.28, by older means. The static C++ runtime, as Debian 12
// builds it, refers to them, and so does code that is compiled against a new glibc's headers.
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "runtime_hooks/core/errno_guard.hpp"

#define CUWARDEN_HIDDEN [[gnu::visibility("hidden")]]

extern "C" {

// glibc 2.32: true would let the C++ runtime skip atomic operations.
CUWARDEN_HIDDEN char __libc_single_threaded = 0;

// glibc 2.34 moved these from libpthread into libc. The runtime asks for the first only to know
// whether threads exist, and uses the second for its locale.
CUWARDEN_HIDDEN int __pthread_key_create(pthread_key_t*, void (*)(void*)) { return EAGAIN; }

// While the work runs, the word holds whose it is: a forked child does not wait for a thread that
// it does not have. An exception or a cancellation leaves it as if nothing had begun.
CUWARDEN_HIDDEN int pthread_once(pthread_once_t* control, void (*work)()) {
  enum : int { fresh = 0, done = 2 };
  const auto settle = [control](int state) {
    __atomic_store_n(control, state, __ATOMIC_RELEASE);
    syscall(SYS_futex, control, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  };
  int state = __atomic_load_n(control, __ATOMIC_ACQUIRE);
  while (state != done) {
    const int running_here = static_cast<int>(getpid()) << 2 | 1;
    if (state == running_here) {
      const cuwarden::ErrnoGuard keep;
      syscall(SYS_futex, control, FUTEX_WAIT_PRIVATE, state, nullptr, nullptr, 0);
      state = __atomic_load_n(control, __ATOMIC_ACQUIRE);
      continue;
    }
    if (!__atomic_compare_exchange_n(control, &state, running_here, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
      continue;
    struct Undo {
      decltype(settle)& set;
      int to = fresh;
      ~Undo() { set(to); }
    } undo{settle};
    work();
    undo.to = done;
    return 0;
  }
  return 0;
}

// glibc 2.36: std::random_device.
CUWARDEN_HIDDEN std::uint32_t arc4random() {
  std::uint32_t value = 0;
  if (syscall(SYS_getrandom, &value, sizeof value, 0) != sizeof value) value = 0x9e3779b9;
  return value;
}

// glibc 2.33: before, these were inline calls of __fxstat and its relatives. The names that end in
// 64 are those of code that asks for 64-bit file offsets; on x86-64 both kinds take one structure.
#define CUWARDEN_STAT(name, number, type)                                                      \
  CUWARDEN_HIDDEN int cuwarden_##name(type file, struct stat* status) noexcept __asm__(#name); \
  CUWARDEN_HIDDEN int cuwarden_##name(type file, struct stat* status) noexcept {               \
    return static_cast<int>(syscall(number, file, status));                                    \
  }
CUWARDEN_STAT(fstat, SYS_fstat, int)
CUWARDEN_STAT(fstat64, SYS_fstat, int)
CUWARDEN_STAT(stat, SYS_stat, const char*)
CUWARDEN_STAT(stat64, SYS_stat, const char*)
CUWARDEN_STAT(lstat, SYS_lstat, const char*)
CUWARDEN_STAT(lstat64, SYS_lstat, const char*)

// glibc 2.30.
CUWARDEN_HIDDEN pid_t gettid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

}  // extern "C"
