// on_signal_stack HOW: a handler on an alternate signal stack calls _exit(7) or abort(), or has a
// request refused and then calls _exit(7). Meanwhile a timer sends signals that are handled on the
// same stack.
#include <cuda_runtime_api.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr int status = 7;
std::string how;

// Overwrites what lies below on the stack, if the kernel begins it anew.
void overwrite(int) {
  char bytes[1024];
  std::memset(bytes, 0x41, sizeof bytes);
  __asm__ volatile("" : : "r"(bytes) : "memory");
}

void end(int) {
  if (how == "abort") std::abort();
  if (how == "refused") {
    void* block = nullptr;
    REQUIRE(cudaMalloc(&block, std::size_t{1} << 45) == cudaErrorMemoryAllocation);
  }
  _exit(status);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  REQUIRE(sigaction(signal, &action, nullptr) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  REQUIRE(argc == 2);
  how = argv[1];
  void* block = nullptr;
  for (int i = 0; i < 50; ++i) REQUIRE(cudaMalloc(&block, 4096));

  static char memory[64 << 10];
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof memory;
  REQUIRE(sigaltstack(&stack, nullptr) == 0);
  handle(SIGTERM, end);
  handle(SIGALRM, overwrite);
  const timeval often{.tv_sec = 0, .tv_usec = 200};
  const itimerval timer{often, often};
  REQUIRE(setitimer(ITIMER_REAL, &timer, nullptr) == 0);
  raise(SIGTERM);
}
