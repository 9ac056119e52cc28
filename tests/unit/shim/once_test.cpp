// pthread_once as the shim carries it for old glibcs: linked into this program in libc's place.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

std::atomic<int> calls{0};

TEST(Once, RunsTheWorkOnceForAllThreads) {
  static pthread_once_t control = PTHREAD_ONCE_INIT;
  calls = 0;
  std::vector<std::thread> threads;
  static std::atomic<int> begun{0};
  std::atomic<int> saw_it_done{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      ++begun;
      pthread_once(&control, [] {
        while (begun != 8) std::this_thread::yield();
        ++calls;
      });
      saw_it_done += calls.load();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(saw_it_done, 8);
}

TEST(Once, StartsAfreshAfterWorkThatThrew) {
  static pthread_once_t control = PTHREAD_ONCE_INIT;
  calls = 0;
  EXPECT_THROW(pthread_once(&control, [] { throw std::runtime_error("once"); }),
               std::runtime_error);
  alarm(20);  // rather than waiting for ever
  pthread_once(&control, [] { ++calls; });
  alarm(0);
  EXPECT_EQ(calls, 1);
}

TEST(Once, AForkedChildDoesNotWaitForAThreadThatItDoesNotHave) {
  static pthread_once_t control = PTHREAD_ONCE_INIT;
  static std::atomic<bool> inside{false}, may_go{false};
  std::thread worker([] {
    pthread_once(&control, [] {
      inside = true;
      inside.notify_all();
      may_go.wait(false);
    });
  });
  inside.wait(false);
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
  may_go.notify_all();
  worker.join();
  EXPECT_EQ(status, 0);
}

}  // namespace
