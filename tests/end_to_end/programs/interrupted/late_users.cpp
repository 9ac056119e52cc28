// late_users HOW: a detached thread ("thread") or the handler of a timer ("timer") uses an object
// that the program destroys in its destructors. Neither is stopped before, as in many programs.
#include <cuda_runtime_api.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tests/comes_about.hpp"

namespace {

std::atomic<bool> has_ticked{false};

struct Logger {
  char* volatile buffer = static_cast<char*>(std::malloc(100));
  void log() {
    std::strcpy(buffer, "tick");
    has_ticked = true;
  }
  ~Logger() {
    std::free(buffer);
    buffer = nullptr;
  }
} logger;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* block = nullptr;
  for (int i = 0; i < 100; ++i) cudaMalloc(&block, 4096);
  constexpr int every_us = 40'000;
  if (std::string(argv[1]) == "thread") {
    std::thread([] {
      for (;;) {
        usleep(every_us);
        logger.log();
      }
    }).detach();
  } else {
    signal(SIGALRM, [](int) { logger.log(); });
    const timeval often{.tv_sec = 0, .tv_usec = every_us};
    const itimerval timer{often, often};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  cuwarden::wait_until("the object was used", [] { return has_ticked.load(); });
}
