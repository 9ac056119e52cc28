// The pool of page-locked memory, on a driver that counts its memory.
#include "runtime_hooks/pool/pinned_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/pool/units.hpp"

namespace cuwarden::pool {
namespace {

struct HostDriver {
  std::mutex lock;
  std::map<std::uint64_t, std::uint64_t> locked;  // Bytes of each locked range, by address.
  std::uint64_t next = std::uint64_t{1} << 40, calls = 0, errors = 0;
  double fail_share = 0;
  std::mt19937 random{3};
} host;

CUresult host_alloc(void** out, size_t bytes, unsigned) {
  const std::lock_guard held(host.lock);
  ++host.calls;
  if (std::uniform_real_distribution<>(0, 1)(host.random) < host.fail_share)
    return CUDA_ERROR_OUT_OF_MEMORY;
  host.next += 2 * bytes;
  host.locked[host.next] = bytes;
  *out = reinterpret_cast<void*>(host.next);
  return CUDA_SUCCESS;
}
CUresult alloc_host_of_its_own(void** out, size_t bytes) { return host_alloc(out, bytes, 0); }
CUresult free_host(void* address) {
  const std::lock_guard held(host.lock);
  host.errors += host.locked.erase(reinterpret_cast<std::uint64_t>(address)) == 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

class PinnedPoolTest : public testing::Test {
 protected:
  PinnedPoolTest() {
    host.locked.clear();
    host.calls = host.errors = 0;
    host.fail_share = 0;
    real.cuMemHostAlloc = host_alloc;
    real.cuMemFreeHost = free_host;
  }
  ~PinnedPoolTest() override { EXPECT_EQ(host.errors, 0u); }
  std::uint64_t allocate(std::uint64_t bytes, unsigned flags = 0, std::uint64_t context = 7) {
    return pool.allocate(real, ContextId{context}, flags, bytes, now);
  }
  bool free(std::uint64_t address) {
    if (!pool.retire(address)) return false;
    pool.give(address, now);
    return true;
  }
  driver::RealDriver real;
  PinnedPool pool;
  std::uint64_t now = 5;
};

TEST_F(PinnedPoolTest, many_small_requests_take_one_piece_of_the_driver) {
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 500; ++i) all.push_back(allocate(4 * KiB));
  EXPECT_EQ(host.calls, 1u);
  EXPECT_EQ(pool.served_count(), 500u);
  EXPECT_EQ(pool.around(all[3] + 4 * KiB - 1)->block.start, all[3]);
  for (const std::uint64_t address : all) EXPECT_TRUE(free(address));
  EXPECT_FALSE(free(all[0]));
  for (int i = 0; i < 500; ++i) EXPECT_NE(allocate(4 * KiB), 0u);
  EXPECT_EQ(host.calls, 1u);
}

TEST_F(PinnedPoolTest, other_flags_and_other_contexts_have_pieces_of_their_own) {
  allocate(KiB, 0), allocate(KiB, 4), allocate(KiB, 0, 8);
  EXPECT_EQ(host.calls, 3u);
  pool.set_ending(ContextId{7}, true);
  pool.context_ended(ContextId{7});
  EXPECT_EQ(pool.held_bytes(), 4 * MiB) << "the other context's";
}

TEST_F(PinnedPoolTest, a_request_without_flags_is_served_from_memory_without_flags) {
  EXPECT_EQ(allocate(KiB, PinnedPool::as_alloc_host), 0u) << "the driver has no such function";
  real.cuMemAllocHost_v2 = alloc_host_of_its_own;
  real.cuMemHostAlloc = [](void**, size_t, unsigned) { return CUDA_ERROR_INVALID_VALUE; };
  const std::uint64_t made = allocate(KiB, PinnedPool::as_alloc_host);
  EXPECT_NE(made, 0u);
  EXPECT_TRUE(free(made));
}

TEST_F(PinnedPoolTest, an_address_in_a_piece_without_a_live_block_is_a_hole) {
  EXPECT_FALSE(pool.is_hole(0x1000));
  const std::uint64_t made = allocate(KiB);
  EXPECT_FALSE(pool.is_hole(made));
  EXPECT_TRUE(pool.is_hole(made + KiB));
  pool.retire(made);
  EXPECT_TRUE(pool.is_hole(made)) << "freed by the program";
  pool.give(made, now);
  pool.give_back(real, UINT64_MAX);
  EXPECT_FALSE(pool.is_hole(made)) << "the driver's again";
}

// The driver may give the addresses of an ending context to another one before the pool learns of
// the end.
TEST_F(PinnedPoolTest, an_address_may_be_given_out_again_before_the_end_of_its_context_is_known) {
  const std::uint64_t before = allocate(KiB);
  pool.set_ending(ContextId{7}, true);
  EXPECT_FALSE(pool.has(before));
  host.next = before - 2 * 4 * MiB;
  const std::uint64_t again = allocate(KiB, 0, 8);
  ASSERT_EQ(again, before);
  pool.context_ended(ContextId{7});
  EXPECT_TRUE(pool.has(again));
  EXPECT_TRUE(free(again));
  EXPECT_EQ(pool.give_back(real, UINT64_MAX), 4 * MiB);
}

TEST_F(PinnedPoolTest, a_context_that_does_not_end_keeps_its_memory) {
  const std::uint64_t one = allocate(KiB);
  pool.set_ending(ContextId{7}, true);
  pool.set_ending(ContextId{7}, false);
  EXPECT_TRUE(free(one));
  EXPECT_EQ(allocate(KiB), one);
}

TEST_F(PinnedPoolTest, free_memory_above_the_limit_goes_back_at_once) {
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 10; ++i) all.push_back(allocate(30 * MiB));
  for (const std::uint64_t address : all) {
    free(address);
    pool.give_back_some(real, now, 1'000'000'000);
  }
  EXPECT_EQ(pool.held_bytes(), 60 * MiB);
  pool.give_back_some(real, 5'000'000'000, 1'000'000'000);
  EXPECT_EQ(pool.held_bytes(), 0u);
}

TEST_F(PinnedPoolTest, large_requests_lock_only_their_own_pages_and_none_above_the_limit) {
  const std::uint64_t large = allocate(30 * MiB + 1);
  EXPECT_EQ(pool.held_bytes(), 32 * MiB);
  EXPECT_EQ(allocate(PinnedPool::largest_bytes + 1), 0u);
  EXPECT_EQ(allocate(0), 0u);
  free(large);
  EXPECT_EQ(allocate(30 * MiB), large);
}

TEST_F(PinnedPoolTest, idle_pieces_are_given_back) {
  const std::uint64_t kept = allocate(3 * MiB), gone = allocate(20 * MiB);
  now = 100;
  free(gone);
  EXPECT_EQ(pool.give_back(real, 99), 0u);
  EXPECT_EQ(pool.give_back(real, 100), 20 * MiB);
  EXPECT_EQ(host.locked.size(), 1u);
  EXPECT_FALSE(pool.has(gone)) << "the driver may hand out the address again";
  EXPECT_TRUE(pool.has(kept));
}

TEST_F(PinnedPoolTest, a_deferred_block_is_not_handed_out) {
  const std::uint64_t first = allocate(3 * MiB);
  pool.deferred().put(*pool.retire(first));
  EXPECT_FALSE(pool.around(first));
  EXPECT_NE(allocate(3 * MiB), first);
  EXPECT_FALSE(pool.deferred().take(ContextId{8}));
  const auto found = pool.deferred().take(ContextId{7});
  ASSERT_TRUE(found);
  pool.give(found->block.start, now);
  EXPECT_FALSE(pool.deferred().any());
  EXPECT_EQ(allocate(3 * MiB), first);
}

TEST_F(PinnedPoolTest, threads_keep_their_blocks_apart_while_driver_calls_fail) {
  host.fail_share = 0.1;
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  for (int thread = 0; thread < 8; ++thread)
    all.emplace_back([&, thread] {
      std::mt19937_64 random(static_cast<std::uint64_t>(thread));
      std::vector<std::uint64_t> mine;
      for (int i = 0; i < 20'000; ++i) {
        if (random() % 2 == 0) {
          const std::uint64_t made = pool.allocate(real, ContextId{7 + random() % 2}, random() % 2,
                                                   1 + random() % (1 << (5 + random() % 18)), 1);
          if (made != 0) mine.push_back(made);
        } else if (!mine.empty()) {
          if (!free(mine.back())) ++wrong;
          mine.pop_back();
        }
        if (i % 500 == 0) pool.give_back(real, UINT64_MAX);
      }
      for (const std::uint64_t address : mine)
        if (!free(address)) ++wrong;
    });
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  pool.give_back(real, UINT64_MAX);
  EXPECT_TRUE(host.locked.empty());
}

}  // namespace
}  // namespace cuwarden::pool
