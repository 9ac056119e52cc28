// left_and_cancelled: a thread leaves CUDA calls by jumps out of a signal handler. Then it is
// cancelled, makes further calls, and comes to a cancellation point.
#include <cuda.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "tests/comes_about.hpp"

namespace {

sigjmp_buf outside;
std::atomic<bool> has_jumped{false}, is_cancelled{false};

void jump(int) { siglongjmp(outside, 1); }

// Blocks or unblocks SIGALRM in the calling thread. `change`: SIG_BLOCK or SIG_UNBLOCK.
void change_alarm(int change) {
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(change, &alarm, nullptr);
}

void* work(void*) {
  cuMemFree(0);
  change_alarm(SIG_UNBLOCK);
  // Atomic, since a jump may lose the changes of other variables.
  static std::atomic<int> turns{0}, jumps{0};
  while (turns++ < 200 && jumps < 40) {
    if (sigsetjmp(outside, 1) != 0) {
      ++jumps;
      continue;
    }
    const itimerval once{{0, 0}, {0, 200 + turns}};
    setitimer(ITIMER_REAL, &once, nullptr);
    for (;;) cuMemFree(0);
  }
  has_jumped = true;
  // The wait itself is to be no cancellation point.
  int before = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  cuwarden::wait_until("the thread is cancelled", [] { return is_cancelled.load(); });
  pthread_setcancelstate(before, nullptr);
  for (int i = 0; i < 3; ++i) cuMemFree(0);
  pthread_testcancel();
  return nullptr;
}

}  // namespace

int main() {
  signal(SIGALRM, jump);
  // The thread alone takes the signal, whose handler jumps to that thread's frame.
  change_alarm(SIG_BLOCK);
  pthread_t thread{};
  pthread_create(&thread, nullptr, work, nullptr);
  cuwarden::wait_until("the thread has left its calls", [] { return has_jumped.load(); });
  pthread_cancel(thread);
  is_cancelled = true;
  void* result = nullptr;
  pthread_join(thread, &result);
  std::puts(result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
}
