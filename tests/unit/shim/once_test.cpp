// The shim's own pthread_once for old glibcs, which replaces libc's in this program.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/comes_about.hpp"

namespace {

std::atomic<int> calls{0};

TEST(Once, the_work_runs_once_for_all_threads) {
  static pthread_once_t control = PTHREAD_ONCE_INIT;
  calls = 0;
  std::vector<std::thread> threads;
  static std::atomic<int> begun{0};
  static bool all_begun = false;
  std::atomic<int> saw_it_done{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      ++begun;
      pthread_once(&control, [] {
        all_begun = cuwarden::comes_about([] { return begun == 8; });
        ++calls;
      });
      saw_it_done += calls.load();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(all_begun);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(saw_it_done, 8);
}

TEST(Once, the_work_starts_again_after_it_threw) {
  static pthread_once_t control = PTHREAD_ONCE_INIT;
  calls = 0;
  EXPECT_THROW(pthread_once(&control, [] { throw std::runtime_error("once"); }),
               std::runtime_error);
  alarm(20);  // ends a test that would wait for ever
  pthread_once(&control, [] { ++calls; });
  alarm(0);
  EXPECT_EQ(calls, 1);
}

TEST(Once, a_forked_child_does_not_wait_for_a_thread_that_it_does_not_have) {
  static pthread_once_t control = PTHREAD_ONCE_INIT;
  static std::atomic<bool> inside{false}, may_go{false};
  std::thread worker([] {
    pthread_once(&control, [] {
      inside = true;
      cuwarden::wait_until("the child has ended", [] { return may_go.load(); });
    });
  });
  cuwarden::wait_until("the thread is inside", [] { return inside.load(); });
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGALRM, SIG_DFL);
    alarm(10);
    calls = 0;
    pthread_once(&control, [] { ++calls; });
    _exit(calls == 1 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  may_go = true;
  worker.join();
  EXPECT_EQ(status, 0);
}

}  // namespace
