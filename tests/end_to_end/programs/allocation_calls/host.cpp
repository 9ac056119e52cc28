// Page-locked host memory: allocated by each of the four calls, and registered.
#include <cstdlib>
#include <initializer_list>

#include "tests/end_to_end/programs/allocation_calls/calls.hpp"

namespace allocation_calls {

void pinned(Account& account) {
  void* one = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(cudaMallocHost(&one, 10000));
  account.allocated("pinned", 10000);
  account.leaked({"cudaMallocHost", "pinned", "pinned", line, 1, 10000});
  void* two = nullptr;
  line = __LINE__ + 1;
  REQUIRE(cudaHostAlloc(&two, 20000, cudaHostAllocPortable));
  account.allocated("pinned", 20000);
  account.leaked({"cudaHostAlloc", "pinned", "pinned", line, 1, 20000});
  void* three = nullptr;
  line = __LINE__ + 1;
  REQUIRE(cuMemAllocHost(&three, 30000));
  account.allocated("pinned", 30000);
  account.leaked({"cuMemAllocHost_v2", "pinned", "pinned", line, 1, 30000});
  void* four = nullptr;
  line = __LINE__ + 1;
  REQUIRE(cuMemHostAlloc(&four, 40000, 0));
  account.allocated("pinned", 40000);
  account.leaked({"cuMemHostAlloc", "pinned", "pinned", line, 1, 40000});

  void* buffers[4] = {};
  REQUIRE(cudaMallocHost(&buffers[0], 4096));
  REQUIRE(cudaHostAlloc(&buffers[1], 4096, 0));
  REQUIRE(cuMemAllocHost(&buffers[2], 4096));
  REQUIRE(cuMemHostAlloc(&buffers[3], 4096, 0));
  for (int i = 0; i < 4; ++i) account.allocated("pinned", 4096);
  REQUIRE(cudaFreeHost(buffers[3]));
  REQUIRE(cudaFreeHost(buffers[2]));
  REQUIRE(cuMemFreeHost(buffers[1]));
  REQUIRE(cuMemFreeHost(buffers[0]));
  for (int i = 0; i < 4; ++i) account.freed("pinned", 4096);
}

void registered(Account& account) {
  constexpr std::size_t bytes = 16384;
  void* memory[4] = {};
  for (void*& block : memory) {
    block = std::aligned_alloc(4096, bytes);
    if (block == nullptr) std::abort();
  }
  int line = __LINE__ + 1;
  REQUIRE(cudaHostRegister(memory[0], bytes, cudaHostRegisterDefault));
  account.leaked({"cudaHostRegister", "registered", "registered", line, 1, bytes});
  line = __LINE__ + 1;
  REQUIRE(cuMemHostRegister(memory[1], bytes, 0));
  account.leaked({"cuMemHostRegister_v2", "registered", "registered", line, 1, bytes});
  REQUIRE(cudaHostRegister(memory[2], bytes, cudaHostRegisterDefault));
  REQUIRE(cuMemHostRegister(memory[3], bytes, 0));
  for (int i = 0; i < 4; ++i) account.allocated("registered", bytes);
  REQUIRE(cuMemHostUnregister(memory[2]));
  REQUIRE(cudaHostUnregister(memory[3]));
  for (int i = 0; i < 2; ++i) account.freed("registered", bytes);
}

}  // namespace allocation_calls
