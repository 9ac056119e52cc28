// Leaks one buffer, and has a library that it links keep another one until its destructor.
#include <cuda_runtime_api.h>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/expected_totals.hpp"

extern "C" int allocate_until_unloaded(unsigned long bytes);

int main() {
  expected::Account account;
  void* leaked = nullptr;
  const int line = __LINE__ + 1;
  REQUIRE(cudaMalloc(&leaked, 1000));
  account.allocated("device", 1000);
  account.leaked({"cudaMalloc", "device", "main", line, 1, 1000});
  if (allocate_until_unloaded(1 << 20) != 0) return 3;
  account.allocated("device", 1 << 20);
  account.freed("device", 1 << 20);
  std::printf("%lld\n", cuwarden::test::used_bytes());
  account.print();
}
