// Compiled for the per-thread default stream: its calls carry the _ptsz suffix.
#include <cuda_runtime_api.h>

#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/require.hpp"

int main() {
  expected::Account account;
  void* one = nullptr;
  const int line = __LINE__ + 1;
  REQUIRE(cudaMallocAsync(&one, 12345, nullptr));
  account.allocated("stream_ordered", 12345);
  account.leaked({"cudaMallocAsync_ptsz", "stream_ordered", "main", line, 1, 12345});
  void* two = nullptr;
  REQUIRE(cudaMallocAsync(&two, 54321, nullptr));
  account.allocated("stream_ordered", 54321);
  REQUIRE(cudaFreeAsync(two, nullptr));
  account.freed("stream_ordered", 54321);
  REQUIRE(cudaStreamSynchronize(nullptr));
  account.print();
}
