// interrupted HOW MICROSECONDS: allocates and frees in a loop, until a signal arrives in the midst
// of it, and the handler ends the process with status 7. HOW is exit, quick_exit or jump: a jump
// leaves the handler by siglongjmp, and main returns.
#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <sys/time.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr int status = 7;
constexpr std::size_t bytes = std::size_t{4} << 20;  // A size for which the driver opens a page.

sigjmp_buf outside;

void exit_in_handler(int) { std::exit(status); }
void quick_exit_in_handler(int) { std::quick_exit(status); }
void jump_in_handler(int) { siglongjmp(outside, 1); }

void call_after(void (*handler)(int), int microseconds) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGALRM, &action, nullptr);
  itimerval timer{};
  timer.it_value.tv_sec = microseconds / 1'000'000;
  timer.it_value.tv_usec = microseconds % 1'000'000;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void allocate_and_free() {
  for (;;) {
    void* block = nullptr;
    if (cudaMalloc(&block, bytes) != cudaSuccess || cudaFree(block) != cudaSuccess) std::abort();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "exit";
  const int microseconds = argc > 2 ? std::atoi(argv[2]) : 1000;
  void* kept = nullptr;
  if (cudaMalloc(&kept, bytes) != cudaSuccess) return 2;
  std::puts("allocated");
  std::fflush(stdout);

  if (how == "jump") {
    if (sigsetjmp(outside, 1) != 0) return status;
    call_after(jump_in_handler, microseconds);
  } else {
    call_after(how == "exit" ? exit_in_handler : quick_exit_in_handler, microseconds);
  }
  allocate_and_free();
}
