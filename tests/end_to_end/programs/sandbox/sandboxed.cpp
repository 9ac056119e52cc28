// sandboxed SITUATION: behind a seccomp filter that kills for all but a few system calls.
//
// refused: the device is nearly full, then requests are refused; a reclaimer is registered
// pieces: many requests of odd sizes, and their frees
// new_thread: a thread that is made behind the filter allocates
// free_thread: one thread confines itself; another one that is made beside it allocates
// vfork: a vforked child calls _exit(3), then a signal ends the process
// fork: a forked child makes a CUDA call
//
// The last line is what the program knows of its own allocations, as JSON.
#include <cuda_runtime_api.h>
#include <cuwarden.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/end_to_end/programs/sandbox/counted_allocations.hpp"
#include "tests/end_to_end/programs/sandbox/filter.hpp"

namespace {

constexpr std::size_t kib = 1024, mib = 1024 * kib;
expected::Account account;

void allocate(std::size_t count, std::size_t bytes) { sandbox::allocate(account, count, bytes); }
void allocate_and_free(std::size_t bytes) { sandbox::allocate_and_free(account, bytes); }

// Confines the calling thread.
void confine(std::initializer_list<std::uint32_t> more) {
  sandbox::Filter filter;
  for (const std::uint32_t number : sandbox::few) filter.answer(number, SECCOMP_RET_ALLOW);
  for (const std::uint32_t number : more) filter.answer(number, SECCOMP_RET_ALLOW);
  filter.answer(SYS_madvise, SECCOMP_RET_ALLOW);
  filter.answer_others(SECCOMP_RET_KILL_PROCESS);
  const sock_fprog program = filter.program();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    std::exit(4);
}

void refused() {
  allocate(1, cuwarden::test::free_bytes() - 100 * mib);
  cuwarden_register_reclaimer(
      "a_cache", nullptr, [](int, std::size_t, void*) { return std::size_t{0}; }, nullptr);
  confine({});
  int errors = 0;
  for (int i = 0; i < 3; ++i) {
    void* memory = nullptr;
    std::size_t pitch = 0;
    errors += cudaMalloc(&memory, 200 * mib) == cudaErrorMemoryAllocation;
    errors += cudaMallocAsync(&memory, 200 * mib, nullptr) == cudaErrorMemoryAllocation;
    errors += cudaMallocPitch(&memory, &pitch, mib, 200) == cudaErrorMemoryAllocation;
  }
  std::printf("errors: %d\n", errors);
}

void pieces() {
  allocate(3, 3 * mib + 1);
  confine({});
  std::vector<void*> all(40);
  for (void*& memory : all) {
    REQUIRE(cudaMalloc(&memory, 3 * mib + 1));
    account.allocated("device", 3 * mib + 1);
  }
  for (void* const memory : all) {
    REQUIRE(cudaFree(memory));
    account.freed("device", 3 * mib + 1);
  }
}

void new_thread() {
  allocate_and_free(4 * kib);
  confine({SYS_clone, SYS_clone3, SYS_set_robust_list, SYS_rseq, SYS_rt_sigprocmask, SYS_mprotect,
           SYS_rt_sigaction});
  std::thread([] { allocate(3, 5 * kib); }).join();
}

void free_thread() {
  allocate_and_free(4 * kib);
  std::thread([] {
    confine({SYS_prctl, SYS_rt_sigprocmask});
    allocate_and_free(5 * kib);
  }).join();
  std::thread([] { allocate(3, 6 * kib); }).join();
}

void child_of_vfork() {
  allocate(3, 4 * kib);
  confine({SYS_vfork, SYS_wait4, SYS_getpid, SYS_kill});
  account.print();
  std::fflush(stdout);
  const pid_t child = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): is tested
  if (child == 0) _exit(3);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 3 << 8) _exit(6);
  kill(getpid(), SIGKILL);
}

void child_of_fork() {
  allocate(3, 4 * kib);
  confine({SYS_clone, SYS_wait4, SYS_set_robust_list, SYS_gettid, SYS_rt_sigprocmask});
  const pid_t child = fork();
  if (child == 0) {
    void* memory = nullptr;
    _exit(cudaMalloc(&memory, 4 * kib) == cudaSuccess ? 1 : 2);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) _exit(6);
  std::printf("the child's status: %d\n", status);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view situation = argc == 2 ? argv[1] : "";
  if (situation == "refused") refused();
  if (situation == "pieces") pieces();
  if (situation == "new_thread") new_thread();
  if (situation == "free_thread") free_thread();
  if (situation == "vfork") child_of_vfork();
  if (situation == "fork") child_of_fork();
  account.print();
  return 0;
}
