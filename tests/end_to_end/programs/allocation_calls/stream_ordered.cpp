// Stream-ordered memory, from the default pool and from one of the program's own.
#include "tests/end_to_end/programs/allocation_calls/calls.hpp"

namespace allocation_calls {

void stream_ordered(Account& account) {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream));

  void* one = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(cudaMallocAsync(&one, 100000, stream));
  account.allocated("stream_ordered", 100000);
  account.leaked({"cudaMallocAsync", "stream_ordered", "stream_ordered", line, 1, 100000});

  CUdeviceptr two = 0;
  line = __LINE__ + 1;
  REQUIRE(cuMemAllocAsync(&two, 200000, stream));
  account.allocated("stream_ordered", 200000);
  account.leaked({"cuMemAllocAsync", "stream_ordered", "stream_ordered", line, 1, 200000});

  void* three = nullptr;
  void* four = nullptr;
  CUdeviceptr five = 0;
  REQUIRE(cudaMallocAsync(&three, 30000, stream));
  REQUIRE(cudaMallocAsync(&four, 40000, nullptr));
  REQUIRE(cuMemAllocAsync(&five, 50000, stream));
  account.allocated("stream_ordered", 30000);
  account.allocated("stream_ordered", 40000);
  account.allocated("stream_ordered", 50000);
  REQUIRE(cudaFreeAsync(three, stream));
  account.freed("stream_ordered", 30000);
  REQUIRE(cudaStreamSynchronize(nullptr));
  REQUIRE(cudaFree(four));  // the plain free takes stream-ordered memory too
  account.freed("stream_ordered", 40000);
  REQUIRE(cuMemFreeAsync(five, stream));
  account.freed("stream_ordered", 50000);

  void* six = nullptr;
  REQUIRE(cudaMalloc(&six, 6000));
  account.allocated("device", 6000);
  REQUIRE(cudaFreeAsync(six, stream));  // and the other way round
  account.freed("device", 6000);
  REQUIRE(cudaStreamSynchronize(stream));
}

void pools(Account& account) {
  cudaMemPoolProps props{};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = 0;
  cudaMemPool_t pool = nullptr;
  REQUIRE(cudaMemPoolCreate(&pool, &props));  // takes no memory that the program asked for

  void* one = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(cudaMallocFromPoolAsync(&one, 1000000, pool, nullptr));
  account.allocated("stream_ordered", 1000000);
  account.leaked({"cudaMallocFromPoolAsync", "stream_ordered", "pools", line, 1, 1000000});

  CUdeviceptr two = 0;
  line = __LINE__ + 1;
  REQUIRE(cuMemAllocFromPoolAsync(&two, 2000000, pool, nullptr));
  account.allocated("stream_ordered", 2000000);
  account.leaked({"cuMemAllocFromPoolAsync", "stream_ordered", "pools", line, 1, 2000000});

  void* three = nullptr;
  REQUIRE(cudaMallocFromPoolAsync(&three, 3000000, pool, nullptr));
  account.allocated("stream_ordered", 3000000);
  REQUIRE(cudaFreeAsync(three, nullptr));
  account.freed("stream_ordered", 3000000);
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaMemPoolTrimTo(pool, 0));
}

}  // namespace allocation_calls
