// Keeps the shim loadable on glibc 2.28. The static C++ runtime, as Debian 12 builds it, refers to
// functions that are newer; these hidden definitions take their place inside this object. Each
// does what the newer function does, by older means.
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "runtime_hooks/core/errno_guard.hpp"
#include "shim/loaded_objects.hpp"

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

// glibc 2.33: before, these were inline calls of __fxstat and its relatives. With 64-bit file
// offsets, which Meson asks for, the names become fstat64, stat64 and lstat64.
CUWARDEN_HIDDEN int fstat(int fd, struct stat* status) noexcept {
  return static_cast<int>(syscall(SYS_fstat, fd, status));
}
CUWARDEN_HIDDEN int stat(const char* path, struct stat* status) noexcept {
  return static_cast<int>(syscall(SYS_stat, path, status));
}
CUWARDEN_HIDDEN int lstat(const char* path, struct stat* status) noexcept {
  return static_cast<int>(syscall(SYS_lstat, path, status));
}

// glibc 2.35, and the unwinder's way to a frame's unwind table. Forwarded where the loader has it
// (no lock); before, the loader's list is walked, as older unwinders do.
CUWARDEN_HIDDEN int _dl_find_object(void* address, dl_find_object* result) noexcept {
  using Find = int (*)(void*, dl_find_object*);
  static constinit std::atomic<Find> real{nullptr};
  static constinit std::atomic<bool> looked{false};
  if (!looked.load(std::memory_order_acquire)) {
    cuwarden::shim::any_loaded_object([](const cuwarden::shim::LoadedObject& object) {
      if (!object.soname().starts_with("ld-linux")) return false;
      real.store(reinterpret_cast<Find>(object.find("_dl_find_object")));
      return true;
    });
    looked.store(true, std::memory_order_release);
  }
  if (const Find find = real.load(std::memory_order_relaxed)) return find(address, result);

  struct Search {
    std::uintptr_t address;
    dl_find_object* result;
  } search{reinterpret_cast<std::uintptr_t>(address), result};
  const int found = dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        std::uintptr_t start = ~std::uintptr_t{0}, end = 0, unwind_table = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& header = info->dlpi_phdr[i];
          const std::uintptr_t at = info->dlpi_addr + header.p_vaddr;
          if (header.p_type == PT_GNU_EH_FRAME) unwind_table = at;
          if (header.p_type != PT_LOAD) continue;
          if (at < start) start = at;
          if (at + header.p_memsz > end) end = at + header.p_memsz;
        }
        if (wanted.address < start || wanted.address >= end) return 0;
        if (unwind_table == 0) return -1;
        std::memset(wanted.result, 0, sizeof *wanted.result);
        wanted.result->dlfo_map_start = reinterpret_cast<void*>(start);
        wanted.result->dlfo_map_end = reinterpret_cast<void*>(end);
        wanted.result->dlfo_eh_frame = reinterpret_cast<void*>(unwind_table);
        return 1;
      },
      &search);
  return found == 1 ? 0 : -1;
}

}  // extern "C"
