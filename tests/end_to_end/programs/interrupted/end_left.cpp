// end_left MILLISECONDS: a signal handler leaves exit() by a jump, so many milliseconds after the
// call. The program allocates more, and then returns 5 from main().
#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>

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
  if (argc != 2) return 2;
  allocate(before);
  signal(SIGALRM, [](int) { siglongjmp(outside, 1); });
  if (sigsetjmp(outside, 1) == 0) {
    const itimerval soon{.it_interval = {},
                         .it_value = {.tv_sec = 0, .tv_usec = 1000 * std::atoi(argv[1])}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    std::exit(1);
  }
  allocate(after);
  return 5;
}
