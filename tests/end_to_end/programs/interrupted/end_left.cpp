// end_left WHAT MILLISECONDS: a signal handler leaves WHAT by a jump, so many milliseconds after
// its call: exit(), abort(), or a refused request. The program allocates more, and then returns 5
// from main(). After a refused request, another thread calls exit(5) instead.
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int before = 30'000, after = 1'000;  // so many that a report takes milliseconds

sigjmp_buf outside;

void allocate(int count) {
  void* block = nullptr;
  for (int i = 0; i < count; ++i)
    if (cudaMalloc(&block, 8) != cudaSuccess) _exit(2);
}

// Allocates where the frames of earlier calls are not overwritten, since functions of CUDA, or
// those between the program and CUDA, may leave much of their frames as it was.
[[gnu::noinline]] void allocate_far_below(int count) {
  char untouched[32 << 10];
  asm volatile("" : : "r"(untouched));
  allocate(count);
}

void leave(int) { siglongjmp(outside, 1); }

void call(const char* what) {
  if (std::strcmp(what, "exit") == 0) std::exit(1);
  if (std::strcmp(what, "abort") == 0) std::abort();
  void* block = nullptr;
  if (cudaMalloc(&block, std::size_t{1} << 50) == cudaSuccess) _exit(3);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  allocate(before);
  signal(SIGALRM, leave);
  signal(SIGABRT, leave);
  if (sigsetjmp(outside, 1) == 0) {
    const itimerval soon{.it_interval = {},
                         .it_value = {.tv_sec = 0, .tv_usec = 1000 * std::atoi(argv[2])}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    call(argv[1]);
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  allocate_far_below(after);
  if (std::strcmp(argv[1], "request") == 0) {
    pthread_t other{};
    pthread_create(
        &other, nullptr, [](void*) -> void* { std::exit(5); }, nullptr);
    pthread_join(other, nullptr);
  }
  return 5;
}
