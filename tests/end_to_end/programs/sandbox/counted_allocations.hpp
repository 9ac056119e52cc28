// Allocations that a program makes and counts in its account.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace sandbox {

// Allocates `bytes` of the device `count` times, and notes them in the account as a leak. Ends the
// program if a request is refused.
[[gnu::noinline]] inline void allocate(expected::Account& account, std::size_t count,
                                       std::size_t bytes) {
  int line = 0;
  for (std::size_t i = 0; i < count; ++i) {
    void* memory = nullptr;
    line = __LINE__ + 1;
    REQUIRE(cudaMalloc(&memory, bytes));
    account.allocated("device", bytes);
  }
  account.leaked({"cudaMalloc", "device", "allocate", line, count, count * bytes});
}

// Allocates `bytes` of the device, frees them, and notes both in the account. Ends the program if
// one of the calls fails.
[[gnu::noinline]] inline void allocate_and_free(expected::Account& account, std::size_t bytes) {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, bytes));
  account.allocated("device", bytes);
  REQUIRE(cudaFree(memory));
  account.freed("device", bytes);
}

}  // namespace sandbox
