// Tests of GoogleTest of which some leak, each within less than a tick of the kernel's clock.
#include <cuda_runtime_api.h>
#include <cuwarden_gtest.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <thread>

namespace {

void* take(std::size_t bytes) {
  void* taken = nullptr;
  EXPECT_EQ(cudaMalloc(&taken, bytes), cudaSuccess);
  return taken;
}

[[gnu::noinline]] void leak_in_thread(int count) {
  for (int i = 0; i < count; ++i) take(2 << 20);
}

TEST(Cache, gives_back_what_it_takes) { EXPECT_EQ(cudaFree(take(1 << 20)), cudaSuccess); }
TEST(Cache, keeps_one_block) { take(1 << 20); }
TEST(Pool, keeps_a_block_of_a_thread) { std::thread(leak_in_thread, 1).join(); }
TEST(Pool, takes_nothing) {}
TEST(Pool, keeps_two_blocks_of_a_thread) { std::thread(leak_in_thread, 2).join(); }

class Suite : public testing::Test {
 protected:
  static void SetUpTestSuite() { take(4 << 20); }
  static void TearDownTestSuite() { take(8 << 20); }
};
TEST_F(Suite, takes_nothing) {}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new cuwarden::StepForEachTest);
  return RUN_ALL_TESTS();
}
