// end_left HOW MILLISECONDS: a signal handler leaves a call by a jump, so many milliseconds after
// the call: exit() (`exit`), abort() (`abort`), or a refused request (`refused`). The program
// allocates more. Then another thread calls exit(5), or main() returns 5 after `exit`.
#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

namespace {

constexpr int before = 30'000, after = 1'000;  // so many that a report takes milliseconds

sigjmp_buf outside;

void allocate(int count) {
  void* block = nullptr;
  for (int i = 0; i < count; ++i)
    if (cudaMalloc(&block, 8) != cudaSuccess) _exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string how = argv[1];
  allocate(before);
  signal(SIGABRT, [](int) {
    for (;;) pause();
  });
  signal(SIGALRM, [](int) { siglongjmp(outside, 1); });
  if (sigsetjmp(outside, 1) == 0) {
    const itimerval soon{.it_interval = {},
                         .it_value = {.tv_sec = 0, .tv_usec = 1000 * std::atoi(argv[2])}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    if (how == "exit") std::exit(1);
    if (how == "abort") std::abort();
    void* block = nullptr;
    if (how == "refused") cudaMalloc(&block, std::size_t{1} << 45);
    pause();
  }
  allocate(after);
  if (how == "exit") return 5;
  std::thread([] { std::exit(5); }).join();
}
