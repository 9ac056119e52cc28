// children_in_memory HOW: between two halves of its allocations, the process makes a child that
// shares its memory and ends by _exit(127), as after an exec that fails. The child confines itself
// by raw system calls ("confined"), or is the first process of a pid namespace ("first_pid").
#include <cuda_runtime_api.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "tests/end_to_end/programs/raw_syscall.hpp"

namespace {

constexpr int status = 127;

[[noreturn]] void end_confined() {
  static sock_filter allow_all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  static sock_fprog filter{1, allow_all};
  raw_syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0);
  raw_syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, reinterpret_cast<long>(&filter));
  _exit(status);
}

int end_as_first(void*) { _exit(status); }

void allocate() {
  void* block = nullptr;
  for (int i = 0; i < 20; ++i) cudaMalloc(&block, 4096);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  allocate();
  pid_t child = -1;
  if (std::string(argv[1]) == "confined") {
    child = vfork();
    if (child == 0) end_confined();
  } else {
    alignas(16) static char stack[64 << 10];
    child = clone(end_as_first, stack + sizeof stack,
                  CLONE_VM | CLONE_VFORK | CLONE_NEWPID | SIGCHLD, nullptr);
  }
  int ended = 0;
  waitpid(child, &ended, 0);
  std::printf("the child's status is %d\n", WEXITSTATUS(ended));
  allocate();
}
