// Linked with the runtime itself, as nvcc does by default: no hook of a runtime function is on the
// way. Leaks 3 buffers.
#include <cuda_runtime_api.h>

#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/require.hpp"

int main() {
  expected::Account account;
  int line = 0;
  for (int i = 0; i < 3; ++i) {
    void* memory = nullptr;
    line = __LINE__ + 1;
    REQUIRE(cudaMalloc(&memory, 1000));
    account.allocated("device", 1000);
  }
  account.leaked({"cudaMalloc", "device", "main", line, 3, 3000});
  void* pinned = nullptr;
  line = __LINE__ + 1;
  REQUIRE(cudaMallocHost(&pinned, 4096));
  account.allocated("pinned", 4096);
  account.leaked({"cudaMallocHost", "pinned", "main", line, 1, 4096});
  account.print();
}
