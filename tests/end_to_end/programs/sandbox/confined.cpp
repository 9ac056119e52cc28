// confined WAY ACTION CALLS WHEN WHERE END: allocates, and confines itself by a seccomp filter.
//
// WAY: prctl, syscall (as libseccomp), raw (an instruction of its own), tsync (all threads),
// strict;
//   raw_on_top: behind a harmless filter that was there before the first CUDA call; failing: the
//   kernel refuses the filter; asking: no filter comes, but a question as libseccomp asks
// ACTION: kill, or the errno that the calls fail with
// CALLS: names of system calls that the filter refuses, separated by commas; or "few": it refuses
//   all but those that this program needs
// WHEN: before or after the first CUDA call, or after, with many calls behind it (after_many)
// WHERE: main, or thread: in a thread that has allocated before it confines itself
// END: return, exit (in the thread that is confined), _exit, raw, fork (a child ends, too)
#include <cuda_runtime_api.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/raw_syscall.hpp"
#include "tests/end_to_end/programs/sandbox/counted_allocations.hpp"
#include "tests/end_to_end/programs/sandbox/filter.hpp"

namespace {

constexpr std::size_t bytes = 4096;
expected::Account account;

struct Name {
  std::string_view name;
  std::uint32_t number;
};
constexpr Name names[] = {
    {"openat", SYS_openat},       {"ftruncate", SYS_ftruncate},
    {"madvise", SYS_madvise},     {"mprotect", SYS_mprotect},
    {"prctl", SYS_prctl},         {"getpid", SYS_getpid},
    {"gettid", SYS_gettid},       {"execve", SYS_execve},
    {"renameat2", SYS_renameat2}, {"fcntl", SYS_fcntl},
    {"futex", SYS_futex},         {"mmap", SYS_mmap},
    {"flock", SYS_flock},         {"rt_sigprocmask", SYS_rt_sigprocmask},
    {"getcwd", SYS_getcwd},       {"fallocate", SYS_fallocate},
};

struct Wish {
  std::string_view way, action, calls, when, where, end;
};

sandbox::Filter filter_of(const Wish& wish) {
  const std::uint32_t refusal =
      wish.action == "kill"
          ? SECCOMP_RET_KILL_PROCESS
          : SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(std::atoi(wish.action.data()));
  const bool only_few = wish.calls == "few";
  sandbox::Filter filter;
  if (only_few) {
    for (const std::uint32_t number : sandbox::few) filter.answer(number, SECCOMP_RET_ALLOW);
  } else {
    for (std::string_view rest = wish.calls; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      bool known = false;
      for (const Name& candidate : names) {
        if (candidate.name != name) continue;
        filter.answer(candidate.number, refusal);
        known = true;
      }
      if (!known) std::exit(4);
    }
  }
  filter.answer_others(only_few ? refusal : SECCOMP_RET_ALLOW);
  return filter;
}

void confine(const Wish& wish) {
  long result = -1;
  if (wish.way == "strict") {
    result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  } else {
    sandbox::Filter filter = filter_of(wish);
    const sock_fprog program = filter.program();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) std::exit(4);
    if (wish.way == "prctl") result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    if (wish.way == "syscall") result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    if (wish.way == "tsync")
      result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (wish.way == "failing") {
      errno = 0;
      result =
          prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr) == -1 && errno == EFAULT ? 0 : -1;
    }
    if (wish.way == "asking")
      result = syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, nullptr) == -1 &&
                       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                               nullptr) == -1 &&
                       errno == EFAULT
                   ? 0
                   : -1;
    if (wish.way == "raw" || wish.way == "raw_on_top")
      result = raw_syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0,
                           static_cast<long>(reinterpret_cast<std::uintptr_t>(&program)));
  }
  if (result != 0) std::exit(4);
}

// The two functions pass any number of arguments on, and set errno.
bool variadic_calls_work() {
  const long page = syscall(SYS_mmap, nullptr, 4096L, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0L);
  if (page == -1 || syscall(SYS_munmap, page, 4096L) != 0) return false;
  errno = 0;
  if (syscall(SYS_mmap, nullptr, 4096L, PROT_READ, MAP_PRIVATE, 0L, 1L) != -1 || errno != EINVAL)
    return false;
  char name[16] = "";
  if (prctl(PR_SET_NAME, "a name") != 0 || syscall(SYS_prctl, PR_GET_NAME, name) != 0 ||
      std::strcmp(name, "a name") != 0)
    return false;
  errno = 0;
  return prctl(-1) == -1 && errno == EINVAL && syscall(-2L) == -1 && errno == ENOSYS;
}

void say() {
  account.print();
  std::fflush(stdout);
}

void work(const Wish& wish) {
  if (wish.when == "before") confine(wish);
  if (wish.way == "raw_on_top") confine({"prctl", "1", "execve", "", "", ""});
  sandbox::allocate(account, 3, bytes);
  if (wish.when == "before") {
    say();
  } else if (wish.when == "after_many") {
    confine(wish);
    sandbox::allocate(account, 20'000, bytes);
    say();
  } else {
    say();
    confine(wish);
    if (wish.way != "strict") sandbox::allocate_and_free(account, bytes);
  }
  if (wish.end == "exit") std::exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  if (!variadic_calls_work()) return 5;
  const Wish wish{argv[1], argv[2], argv[3], argv[4], argv[5], argv[6]};
  if (wish.where == "thread") {
    std::thread([&] { work(wish); }).join();
  } else {
    work(wish);
  }
  if (wish.end == "_exit") _exit(0);
  if (wish.end == "fork") {
    const pid_t child = fork();
    if (child == 0) std::exit(0);
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) return 6;
  }
  if (wish.end == "raw") raw_syscall(SYS_exit, 0, 0, 0);
  return 0;
}
