// ending HOW: allocates, says what it leaks, and ends in one of the ways that processes end.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/comes_about.hpp"
#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/let_time_pass.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr std::size_t bytes = std::size_t{1} << 20;
expected::Account account;

// The last of the program's static objects to be destroyed. Its memory is freed before the report
// is made.
struct FreesAtTheEnd {
  void* memory = nullptr;
  ~FreesAtTheEnd() {
    if (memory != nullptr) cudaFree(memory);
  }
} in_static_storage;

[[gnu::noinline]] void allocate_three() {
  int line = 0;
  for (int i = 0; i < 3; ++i) {
    void* memory = nullptr;
    line = __LINE__ + 1;
    REQUIRE(cudaMalloc(&memory, bytes));
    account.allocated("device", bytes);
  }
  account.leaked({"cudaMalloc", "device", "allocate_three", line, 3, 3 * bytes});
}

void say() {
  account.print();
  std::fflush(stdout);
}

// The child prints no account, since this output must have one only.
void child_is_silent() {
  if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(9);
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

void close_all_descriptors() {
  for (int descriptor = 3; descriptor < 1024; ++descriptor) close(descriptor);
}

// Each call below is made by a thread that was asked to end (pthread_cancel). The thread ends only
// at its own cancellation point, after the calls.
void* cancelled_in_cuda(void* in_thread_first) {
  if (in_thread_first == nullptr) allocate_three();
  let_time_pass(300);  // long enough for the next call to take stock of the host's memory
  pthread_cancel(pthread_self());
  allocate_three();
  cudaFree(nullptr);
  std::puts("still here");
  pthread_testcancel();
  return nullptr;
}

int run_cancelled(bool in_first_call) {
  pthread_t thread;
  void* result = nullptr;
  static char first;
  if (pthread_create(&thread, nullptr, cancelled_in_cuda, in_first_call ? &first : nullptr) != 0)
    return 3;
  pthread_join(thread, &result);
  std::printf("cancelled: %d\n", result == PTHREAD_CANCELED ? 1 : 0);
  say();
  return 0;
}

// Asks for more memory than is free, so that the request waits.
void* cancelled_in_wait(void*) {
  pthread_cancel(pthread_self());
  void* memory = nullptr;
  std::printf("refused: %d\n", cudaMalloc(&memory, std::size_t{2} << 30) != cudaSuccess ? 1 : 0);
  pthread_testcancel();
  return nullptr;
}

int run_cancelled_in_wait() {
  pthread_t thread;
  void* result = nullptr;
  if (pthread_create(&thread, nullptr, cancelled_in_wait, nullptr) != 0) return 3;
  pthread_join(thread, &result);
  std::printf("cancelled: %d\n", result == PTHREAD_CANCELED ? 1 : 0);
  return 0;
}

// Ends in a signal handler that interrupts malloc or free, as it does almost always.
int end_inside_malloc() {
  // libc takes its heap's lock only once there are two threads.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::thread([] {
    for (;;) pause();
  }).detach();
  pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
  std::signal(SIGALRM, [](int) { _exit(8); });
  itimerval soon{};
  soon.it_value.tv_usec = 20'000;
  setitimer(ITIMER_REAL, &soon, nullptr);
  void* blocks[200]{};
  for (unsigned x = 1;;) {
    x = x * 1103515245 + 12345;
    void*& block = blocks[(x >> 16) % 200];
    std::free(block);
    block = std::malloc(1500 + (x >> 8) % 60'000);
  }
}

// A process of its own in this memory, as clone makes it, without CLONE_THREAD and CLONE_SETTLS.
pid_t begin_in_this_memory(int (*work)(void*), void* argument) {
  constexpr std::size_t stack_bytes = std::size_t{1} << 20;
  static char stack[stack_bytes];
  return clone(work, stack + stack_bytes, CLONE_VM | CLONE_FILES | SIGCHLD, argument);
}

int allocate_in_child(void*) {
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes) == cudaSuccess ? 0 : 9;
}
int allocate_in_child_and_exit(void*) { std::exit(allocate_in_child(nullptr)); }

// The child shares this memory, makes the first CUDA call in it, and ends.
int first_call_in_child(bool exits) {
  const pid_t child =
      begin_in_this_memory(exits ? allocate_in_child_and_exit : allocate_in_child, nullptr);
  const int status = wait_for(child);
  std::printf("child: %d\n", status);
  if (exits) return 4;
  account.allocated("device", bytes);
  allocate_three();
  account.print();
  return 4;
}

// Forks while another thread makes the process's first CUDA call; the children's own come next. The
// call is one that asks nothing of the driver, which need not survive such a fork itself.
int fork_during_first_call() {
  constexpr int count = 60;
  using Version = int (*)(int*);
  using Free = int (*)(unsigned long long);
  static Free free_nothing = nullptr;
  static std::atomic<bool> begun{false};
  int version = 0;
  const auto ask = reinterpret_cast<Version>(dlsym(RTLD_DEFAULT, "cuDriverGetVersion"));
  free_nothing = reinterpret_cast<Free>(dlsym(RTLD_DEFAULT, "cuMemFree_v2"));
  if (ask == nullptr || free_nothing == nullptr || ask(&version) != 0) return 3;
  std::thread first([] {
    begun = true;
    free_nothing(0);
  });
  cuwarden::wait_awake_until("the call begins", [] { return begun.load(); });
  pid_t children[count];
  for (pid_t& child : children) {
    child = fork();
    if (child == 0) {
      alarm(20);  // ends a child that waits for ever
      free_nothing(0);
      _exit(0);
    }
    usleep(30);
  }
  int bad = 0;
  for (const pid_t child : children) bad += wait_for(child) == 0 ? 0 : 1;
  first.join();
  std::printf("%d children did not end well\n", bad);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";

  if (how == "fork_then_cuda") {  // each process makes its own first CUDA call
    const pid_t child = fork();
    if (child == 0) child_is_silent();
    allocate_three();
    if (child == 0) {
      void* one_more = nullptr;
      REQUIRE(cudaMalloc(&one_more, 4096));
      std::exit(0);
    }
    if (wait_for(child) != 0) return 3;
    say();
    return 0;
  }

  if (how == "first_call_in_child") return first_call_in_child(false);
  if (how == "first_call_in_child_that_exits") return first_call_in_child(true);
  if (how == "first_call_in_childs_child") {
    const pid_t child = fork();
    if (child == 0) _exit(first_call_in_child(false));
    return wait_for(child) == 4 << 8 ? 0 : 3;
  }
  if (how == "fork_during_first_call") return fork_during_first_call();
  if (how == "vfork_beside_dlmopen") {  // CUDA in another namespace, where no hook is
    void* const driver = dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW);
    const pid_t child = vfork();
    if (child == 0) _exit(5);
    std::printf("loaded: %d, child: %d\n", driver != nullptr ? 1 : 0, wait_for(child));
    return 0;
  }
  if (how == "lock_before" || how == "lock_after") {  // a real-time program's memory stays in RAM
    void* memory = nullptr;
    if (how == "lock_after" && cudaMalloc(&memory, bytes) != cudaSuccess) return 3;
    if (mlockall(how == "lock_after" ? MCL_CURRENT : MCL_CURRENT | MCL_FUTURE) != 0) return 4;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) return 3;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmLck:") || line.starts_with("VmRSS:")) std::puts(line.c_str());
    return 0;
  }
  if (how == "stderr_reused") {  // descriptor 2 is the program's own file now
    close(2);
    const int file = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file != 2 || write(file, "data", 4) != 4) return 3;
    allocate_three();
    return 0;
  }
  if (how == "stderr_to_log") {
    if (std::freopen(argv[2], "a", stderr) == nullptr) return 3;
    allocate_three();
    return 0;
  }
  if (how == "cancelled_in_first_call") return run_cancelled(true);
  if (how == "cancelled") return run_cancelled(false);
  if (how == "cancelled_in_wait") return run_cancelled_in_wait();

  allocate_three();

  if (how == "static_destructor") {
    REQUIRE(cudaMalloc(&in_static_storage.memory, 5 * bytes));
    account.allocated("device", 5 * bytes);
    account.freed("device", 5 * bytes);
    say();
    return 0;
  }
  if (how == "fork_idle" || how == "fork_idle_underscore_exit") {
    const pid_t child = fork();
    if (child == 0 && how == "fork_idle") std::exit(0);
    if (child == 0) _exit(0);
    if (wait_for(child) != 0) return 3;
    say();
    return 0;
  }
  if (how == "fork_cuda_too_late") {  // CUDA does not survive a fork; the child finds out
    const pid_t child = fork();
    if (child == 0) {
      child_is_silent();
      void* memory = nullptr;
      std::exit(cudaMalloc(&memory, bytes) == cudaSuccess ? 1 : 0);
    }
    const int status = wait_for(child);
    std::printf("child: %d\n", status);
    say();
    return 0;
  }
  if (how == "fork_exec") {
    const pid_t child = fork();
    if (child == 0) {
      child_is_silent();
      execl("/proc/self/exe", "ending", "return", nullptr);
      _exit(9);
    }
    if (wait_for(child) != 0) return 3;
    say();
    return 0;
  }
  if (how == "vfork_failed_exec" || how == "vfork_failed_exec_and_kill") {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/nonexistent/program", "program", nullptr);
      _exit(127);
    }
    const int status = wait_for(child);
    if (how == "vfork_failed_exec_and_kill") raise(SIGKILL);
    void* afterwards = nullptr;
    REQUIRE(cudaMalloc(&afterwards, bytes));  // recording goes on
    account.allocated("device", bytes);
    REQUIRE(cudaFree(afterwards));
    account.freed("device", bytes);
    std::printf("child: %d\n", WEXITSTATUS(status));
    say();
    return 0;
  }
  if (how == "close_descriptors") {
    close_all_descriptors();
    // Reused at once by the program's own files, which must stay as they are.
    FILE* own = std::tmpfile();
    if (own == nullptr) return 3;
    std::fputs("own", own);
    allocate_three();
    std::fflush(own);
    if (std::ftell(own) != 3) return 3;
    say();
    return 0;
  }
  if (how == "close_all_then_exit") {  // the standard ones too, once all is said
    say();
    close(0);
    close(1);
    close(2);
    close_all_descriptors();
    return 0;
  }
  if (how == "log_becomes_fifo") {
    if (argc < 3 || unlink(argv[2]) != 0 || mkfifo(argv[2], 0600) != 0) return 3;
    return 0;
  }
  if (how == "change_directory") {
    if (argc < 3 || chdir(argv[2]) != 0) return 3;
    say();
    return 0;
  }
  if (how == "drop_privileges") {
    if (setgid(65534) != 0 || setuid(65534) != 0) return 3;
    say();
    return 0;
  }

  if (how == "abort_and_go_on" || how == "abort_go_on_and_kill") {
    static sigjmp_buf before;
    std::signal(SIGABRT, [](int) { siglongjmp(before, 1); });
    if (sigsetjmp(before, 1) == 0) std::abort();
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, 4096));
    if (how == "abort_go_on_and_kill") raise(SIGKILL);
    return 5;
  }
  if (how == "abort_in_handler" || how == "abort_killed_in_handler") {
    static int runs = 0;
    if (how == "abort_in_handler")
      std::signal(SIGABRT, [](int) { dprintf(1, "handler %d\n", ++runs); });
    else
      std::signal(SIGABRT, [](int) { raise(SIGKILL); });
    std::abort();
  }
  if (how == "change_root") {
    say();
    return chroot(argv[2]) == 0 && chdir("/") == 0 ? 0 : 3;
  }

  say();
  if (how == "return") return 0;
  if (how == "return_7") return 7;
  if (how == "exit") std::exit(0);
  if (how == "exit_9") std::exit(9);
  if (how == "exit_from_thread") {
    std::thread([] { std::exit(5); }).join();
  }
  if (how == "quick_exit") std::quick_exit(6);
  if (how == "_exit") _exit(8);
  if (how == "_Exit") _Exit(11);
  if (how == "abort") std::abort();
  if (how == "throw") throw std::runtime_error("an exception without a handler");
  if (how == "_exit_inside_malloc") return end_inside_malloc();
  if (how == "kill") raise(SIGKILL);
  if (how == "segfault") raise(SIGSEGV);
  return 2;
}
