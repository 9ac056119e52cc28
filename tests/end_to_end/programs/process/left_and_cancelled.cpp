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

namespace {

sigjmp_buf outside;
std::atomic<bool> has_jumped{false}, is_cancelled{false};

void jump(int) { siglongjmp(outside, 1); }

void* work(void*) {
  cuMemFree(0);
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
  while (!is_cancelled) {
  }
  for (int i = 0; i < 3; ++i) cuMemFree(0);
  pthread_testcancel();
  return nullptr;
}

}  // namespace

int main() {
  signal(SIGALRM, jump);
  pthread_t thread{};
  pthread_create(&thread, nullptr, work, nullptr);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  while (!has_jumped) usleep(100);
  pthread_cancel(thread);
  is_cancelled = true;
  void* result = nullptr;
  pthread_join(thread, &result);
  std::puts(result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
}
