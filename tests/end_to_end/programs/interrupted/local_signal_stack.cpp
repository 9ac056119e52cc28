// local_signal_stack: a request is refused in a signal handler whose stack is a local array of
// main(). The program tells if the bytes below that stack are what they were.
#include <cuda_runtime_api.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace {

constexpr char kept = 0x5a;

void request_too_much(int) {
  void* block = nullptr;
  cudaMalloc(&block, std::size_t{1} << 45);
}

}  // namespace

int main() {
  void* block = nullptr;
  cudaMalloc(&block, 4096);
  // The thread has megabytes of stack below the arrays.
  struct {
    char below[64 << 10];
    char stack[32 << 10];
  } memory;
  std::memset(memory.below, kept, sizeof memory.below);
  stack_t stack{};
  stack.ss_sp = memory.stack;
  stack.ss_size = sizeof memory.stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = request_too_much;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  const bool is_whole = std::ranges::all_of(memory.below, [](char byte) { return byte == kept; });
  std::puts(is_whole ? "kept" : "overwritten");
}
