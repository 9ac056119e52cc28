// The runtime above the driver: its calls of the driver, its errors, its contexts.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

TEST(RuntimeFacts, an_allocation_of_nothing_is_a_null_pointer) {
  int nothing = 0;
  void* pointer = &nothing;
  EXPECT_EQ(cudaMalloc(&pointer, 0), cudaSuccess);
  EXPECT_EQ(pointer, nullptr);
}

TEST(RuntimeFacts, an_error_is_remembered_until_cudaGetLastError_returns_it) {
  void* pointer = nullptr;
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&pointer, std::size_t{1} << 62), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(RuntimeFacts, a_reset_frees_what_was_allocated_and_the_next_call_makes_a_context) {
  void* pointer = nullptr;
  std::size_t fresh = 0, total = 0, after = 0;
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&fresh, &total), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&pointer, 64 << 20), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_NEAR(static_cast<double>(after), static_cast<double>(fresh), 8 << 20);
  EXPECT_EQ(cudaMalloc(&pointer, 4096), cudaSuccess);
  EXPECT_EQ(cudaFree(pointer), cudaSuccess);
}

TEST(RuntimeFacts, stream_ordered_memory_outlives_a_reset_until_it_is_freed) {
  void* pointer = nullptr;
  std::size_t fresh = 0, total = 0, held = 0, after = 0;
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&fresh, &total), cudaSuccess);
  ASSERT_EQ(cudaMallocAsync(&pointer, 512 << 20, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&held, &total), cudaSuccess);
  EXPECT_NEAR(static_cast<double>(fresh - held), 512 << 20, 32 << 20);
  EXPECT_EQ(cudaFreeAsync(pointer, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_NEAR(static_cast<double>(after), static_cast<double>(fresh), 32 << 20);
}

TEST(RuntimeFacts, bytes_make_the_round_trip_in_rows) {
  std::vector<int> in(64 * 10), out(64 * 10);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i);
  void* pointer = nullptr;
  std::size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&pointer, &pitch, 64 * sizeof(int), 10), cudaSuccess);
  EXPECT_EQ(pitch % 512, 0u);
  ASSERT_EQ(cudaMemcpy2D(pointer, pitch, in.data(), 256, 256, 10, cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpy2D(out.data(), 256, pointer, pitch, 256, 10, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(in, out);
  EXPECT_EQ(cudaFree(pointer), cudaSuccess);
}

TEST(RuntimeFacts, pointers_are_told_apart) {
  void* device = nullptr;
  void* pinned = nullptr;
  void* managed = nullptr;
  int plain = 0;
  ASSERT_EQ(cudaMalloc(&device, 100), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 100), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&managed, 100, cudaMemAttachGlobal), cudaSuccess);
  const auto type = [](const void* pointer) {
    cudaPointerAttributes attributes{};
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, pointer), cudaSuccess);
    return attributes.type;
  };
  EXPECT_EQ(type(device), cudaMemoryTypeDevice);
  EXPECT_EQ(type(pinned), cudaMemoryTypeHost);
  EXPECT_EQ(type(managed), cudaMemoryTypeManaged);
  EXPECT_EQ(type(&plain), cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);
}

TEST(RuntimeFacts, an_array_holds_what_is_copied_into_it) {
  const cudaChannelFormatDesc format =
      cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  cudaArray_t array = nullptr;
  float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {};
  ASSERT_EQ(cudaMallocArray(&array, &format, 4, 2, 0), cudaSuccess);
  ASSERT_EQ(cudaMemcpy2DToArray(array, 0, 0, in, 16, 16, 2, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy2DFromArray(out, 16, array, 0, 0, 16, 2, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_TRUE(std::equal(in, in + 8, out));
  EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
}

TEST(RuntimeFacts, driver_entry_points_come_through_the_runtime) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  EXPECT_EQ(
      cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &status),
      cudaSuccess);
  EXPECT_NE(function, nullptr);
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
}

TEST(RuntimeFacts, a_forked_child_exits_while_the_parents_threads_are_inside_the_runtime) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) cudaSetDevice(0);
  });
  int hung = 0;
  for (int i = 0; i < 100 && hung == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // Ends a child that waits for ever.
      std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    hung += WIFSIGNALED(status) ? 1 : 0;
  }
  stop = true;
  other.join();
  EXPECT_EQ(hung, 0);
}

}  // namespace
