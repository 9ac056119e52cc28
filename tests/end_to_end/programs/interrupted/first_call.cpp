// first_call HOW MICROSECONDS: a signal interrupts the process's first CUDA call after that time.
// Its handler calls exit(), or leaves the call by a jump. Another thread makes a CUDA call of its
// own, and is waited for.
#include <cuda.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/comes_about.hpp"
#include "tests/thread_state.hpp"

namespace {

constexpr int status = 6;
sigjmp_buf outside;
std::thread* other = nullptr;
std::atomic<bool> other_may_call{false}, other_has_called{false};
std::atomic<pid_t> other_calls{0};  // the other thread's id once it begins its call; 0 before

void join() {
  other_may_call = true;
  other->join();
}

void exit_in_handler(int) {
  other_may_call = true;
  cuwarden::wait_until("the other thread waits in its call, or has made it", [] {
    return other_has_called || (other_calls != 0 && cuwarden::thread_state(other_calls) == 'S');
  });
  std::exit(status);
}
void jump_in_handler(int) { siglongjmp(outside, 1); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool exits = std::string(argv[1]) == "exit";
  signal(SIGALRM, exits ? exit_in_handler : jump_in_handler);
  // The signal is for this thread.
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  other = new std::thread([] {
    cuwarden::wait_until("the first call has ended, or its handler runs",
                         [] { return other_may_call.load(); });
    other_calls = gettid();
    cuMemFree(0);
    other_has_called = true;
  });
  pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  if (exits) std::atexit(join);

  if (sigsetjmp(outside, 1) == 0) {
    const itimerval once{{0, 0}, {0, std::atoi(argv[2])}};
    setitimer(ITIMER_REAL, &once, nullptr);
    cuMemFree(0);  // asks nothing of the device
    if (exits) pause();
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
  }
  if (!exits) join();
  std::puts("joined");
  return exits ? 2 : 0;
}
