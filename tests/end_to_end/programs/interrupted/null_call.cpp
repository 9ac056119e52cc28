// Calls a null pointer. The handler of SIGSEGV allocates, and then leaves the call.
#include <cuda_runtime_api.h>

#include <csetjmp>
#include <csignal>

#include "tests/end_to_end/programs/require.hpp"

namespace {

sigjmp_buf back;

void allocate_in_handler(int) {
  void* block = nullptr;
  REQUIRE(cudaMalloc(&block, 4096));
  siglongjmp(back, 1);
}

// Not known to the compiler, which would leave out the call of a null pointer otherwise.
void (*volatile missing)() = nullptr;

[[gnu::noinline]] void call_missing() {
  missing();
  __asm__ volatile("");  // so that the call is no jump
}

}  // namespace

int main() {
  REQUIRE(std::signal(SIGSEGV, allocate_in_handler) != SIG_ERR);
  if (sigsetjmp(back, 1) == 0) call_missing();
}
