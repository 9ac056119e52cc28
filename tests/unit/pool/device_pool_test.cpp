// Arenas of the device pool, on a driver that counts its memory.
#include "runtime_hooks/pool/device_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/repetitions.hpp"
#include "tests/unit/pool/counting_driver.hpp"

namespace cuwarden::pool {
namespace {

class DevicePoolTest : public testing::Test {
 protected:
  DevicePoolTest() { driver = std::make_unique<Driver>(); }
  ~DevicePoolTest() override {
    EXPECT_EQ(driver->errors, 0) << "calls that the driver would refuse";
  }
  std::uint64_t allocate(std::uint64_t bytes, std::uint64_t context = 7, int device = 0) {
    return pool.allocate(real, DeviceOrdinal{device}, ContextId{context}, bytes, now);
  }
  bool free(std::uint64_t address) {
    Arena* const arena = pool.owner(address);
    const auto block = arena == nullptr ? std::nullopt : arena->retire(address);
    if (block) arena->give(*block, now);
    return block.has_value();
  }
  std::uint64_t taken() const { return 100 * MiB - driver->free_bytes; }
  ArenaCounts counts() { return pool.counts(DeviceOrdinal{0}); }

  const driver::RealDriver real = functions();
  Peers peers;
  DevicePool pool{peers};
  std::uint64_t now = 5;
};

TEST_F(DevicePoolTest, requests_are_wasteful_that_slabs_serve_or_that_are_rounded_up_by_much) {
  for (const std::uint64_t bytes :
       {std::uint64_t{1}, MiB, 2 * MiB - 512, 3 * MiB, 5 * MiB, 13 * MiB})
    EXPECT_TRUE(DevicePool::is_wasteful(bytes)) << bytes;
  for (const std::uint64_t bytes : {std::uint64_t{0}, 2 * MiB, 4 * MiB, 15 * MiB, 64 * MiB - 1,
                                    2 * MiB - 511, UINT64_MAX, UINT64_MAX - 4 * MiB})
    EXPECT_FALSE(DevicePool::is_wasteful(bytes)) << bytes;
}

TEST_F(DevicePoolTest, pieces_lie_side_by_side_without_rounding) {
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 20; ++i) all.push_back(allocate(3 * MiB));
  EXPECT_EQ(std::ranges::count(all, 0), 0);
  EXPECT_LE(taken(), 62 * MiB) << "the driver would take 80";
  EXPECT_EQ(counts().held_bytes, taken());
  EXPECT_EQ(counts().live_bytes, 60 * MiB);
  EXPECT_EQ(counts().served_count, 20u);
  EXPECT_EQ(pool.around(all[3] + 3 * MiB - 1)->block.start, all[3]);
  for (const std::uint64_t address : all) EXPECT_TRUE(free(address));
  EXPECT_FALSE(free(all[0])) << "twice";
  EXPECT_EQ(counts().live_bytes, 0u);
  EXPECT_EQ(counts().idle_bytes, taken());
}

TEST_F(DevicePoolTest, idle_memory_goes_back_on_demand_and_after_a_time) {
  const std::uint64_t first = allocate(3 * MiB), second = allocate(5 * MiB);
  const std::uint64_t with_both = taken();
  now = 100;
  free(second);
  EXPECT_EQ(taken(), with_both);
  EXPECT_EQ(pool.give_back(real, DeviceOrdinal{0}, 99), 0u) << "too soon";
  EXPECT_EQ(pool.give_back(real, DeviceOrdinal{1}, 1000), 0u) << "another device's";
  const std::uint64_t given = pool.give_back(real, DeviceOrdinal{0}, 100);
  EXPECT_GE(given, 4 * MiB);
  EXPECT_EQ(taken(), with_both - given);
  EXPECT_EQ(counts().returned_bytes, given);
  EXPECT_TRUE(pool.around(first));
  EXPECT_NE(allocate(5 * MiB), 0u) << "and is taken again";
  EXPECT_EQ(taken(), with_both);
}

TEST_F(DevicePoolTest, a_page_that_holds_a_block_is_not_given_back) {
  const std::uint64_t small = allocate(512), large = allocate(5 * MiB);
  free(large);
  pool.give_back(real, no_device, UINT64_MAX);
  EXPECT_EQ(taken(), 2 * MiB);
  free(small);
  pool.give_back(real, no_device, UINT64_MAX);
  EXPECT_EQ(taken(), 0u);
  EXPECT_TRUE(driver->mappings.empty());
}

TEST_F(DevicePoolTest, idle_memory_of_other_contexts_is_taken_before_a_request_is_refused) {
  const std::uint64_t here = allocate(31 * MiB), there = allocate(31 * MiB, 8);
  ASSERT_NE(there, 0u);
  free(there);
  EXPECT_NE(allocate(31 * MiB), 0u);
  EXPECT_NE(allocate(31 * MiB), 0u) << "there is room for three";
  EXPECT_EQ(allocate(31 * MiB), 0u);
  EXPECT_NE(here, 0u);
}

TEST_F(DevicePoolTest, the_memory_of_an_ended_context_goes_back) {
  const std::uint64_t gone = allocate(3 * MiB), kept = allocate(3 * MiB, 8);
  pool.deferred().put({*pool.owner(gone)->retire(gone), pool.owner(gone)});
  pool.set_ending(ContextId{7}, true);
  pool.set_ending(ContextId{7}, false);
  EXPECT_NE(allocate(512), 0u) << "the context did not end";
  pool.set_ending(ContextId{7}, true);
  const std::uint64_t next = allocate(5 * MiB);
  EXPECT_NE(pool.owner(next), pool.owner(gone)) << "a new context with the same handle";
  pool.context_ended(real, ContextId{7});
  EXPECT_TRUE(pool.around(next));
  EXPECT_EQ(pool.owner(gone), nullptr) << "the addresses may belong to another allocation";
  EXPECT_FALSE(pool.around(gone));
  EXPECT_FALSE(free(gone));
  EXPECT_FALSE(pool.deferred().any());
  EXPECT_EQ(taken(), 4 * MiB + 6 * MiB);
  EXPECT_TRUE(free(kept));
  EXPECT_EQ(driver->reservations.size(), 2u);
}

TEST_F(DevicePoolTest, a_thousand_contexts_may_come_and_go) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_NE(allocate(3 * MiB), 0u) << i;
    pool.set_ending(ContextId{7}, true);
    pool.context_ended(real, ContextId{7});
    ASSERT_TRUE(driver->reservations.empty());
  }
  EXPECT_EQ(taken(), 0u);
}

TEST_F(DevicePoolTest, the_counts_of_a_device_stay_its_own_when_its_contexts_have_ended) {
  ASSERT_NE(allocate(3 * MiB), 0u);
  pool.set_ending(ContextId{7}, true);
  pool.context_ended(real, ContextId{7});
  ASSERT_NE(allocate(3 * MiB, 8, 1), 0u);
  EXPECT_EQ(counts().served_count, 1u);
  EXPECT_EQ(pool.counts(DeviceOrdinal{1}).served_count, 1u);
}

TEST_F(DevicePoolTest, many_deferred_blocks_are_taken_out_fast) {
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 50'000; ++i) all.push_back(allocate(512));
  for (const std::uint64_t address : all)
    pool.deferred().put({*pool.owner(address)->retire(address), pool.owner(address)});
  std::size_t taken_out = 0;
  while (const auto found = pool.deferred().take(ContextId{7})) {
    found->arena->give(found->block, now);
    ++taken_out;
  }
  EXPECT_EQ(taken_out, all.size());
  EXPECT_EQ(counts().idle_bytes, counts().held_bytes);
}

TEST_F(DevicePoolTest, a_peer_may_use_memory_from_before_and_after_its_permission) {
  allocate(3 * MiB);
  peers.set(DeviceOrdinal{0}, DeviceOrdinal{3}, true);
  EXPECT_EQ(pool.change_access(real, DeviceOrdinal{0}, DeviceOrdinal{3}, true), CUDA_SUCCESS);
  allocate(31 * MiB);
  const auto all_have = [&](std::uint64_t devices) {
    return std::ranges::all_of(driver->mappings,
                               [&](const auto& at) { return at.second.devices == devices; });
  };
  EXPECT_TRUE(all_have(0b1001));
  peers.set(DeviceOrdinal{0}, DeviceOrdinal{3}, false);
  EXPECT_EQ(pool.change_access(real, DeviceOrdinal{0}, DeviceOrdinal{3}, false), CUDA_SUCCESS);
  EXPECT_TRUE(all_have(0b0001));
}

TEST_F(DevicePoolTest, a_device_without_mapped_memory_is_left_to_the_driver) {
  driver->maps_host = false;  // The driver then reports no attribute as supported.
  EXPECT_EQ(allocate(3 * MiB), 0u);
  EXPECT_TRUE(driver->reservations.empty());
  EXPECT_FALSE(pool.any());
}

// Whichever call the driver refuses, the request is refused or served, and nothing is lost.
TEST_F(DevicePoolTest, a_failure_of_any_call_leaves_nothing_behind) {
  for (int calls = 0; calls < 40; ++calls) {
    driver->fail_after = calls;
    DevicePool one(peers);
    std::vector<std::uint64_t> all;
    for (const std::uint64_t bytes : {3 * MiB, std::uint64_t{700}, 5 * MiB, 31 * MiB, MiB}) {
      const std::uint64_t address = one.allocate(real, DeviceOrdinal{0}, ContextId{7}, bytes, 1);
      if (address != 0) all.push_back(address);
    }
    driver->fail_after = -1;
    for (const std::uint64_t address : all) {
      const auto block = one.owner(address)->retire(address);
      ASSERT_TRUE(block);
      one.owner(address)->give(*block, 1);
    }
    one.give_back(real, no_device, UINT64_MAX);
    EXPECT_EQ(taken(), 0u) << calls;
    one.set_ending(ContextId{7}, true);
    one.context_ended(real, ContextId{7});
    EXPECT_TRUE(driver->handles.empty() && driver->mappings.empty() &&
                driver->reservations.empty());
  }
}

// 8 threads do many operations while a tenth of the driver's calls fail. No two blocks
// share a byte, no block is lost, and no memory stays behind.
TEST_F(DevicePoolTest, threads_keep_their_blocks_apart_while_driver_calls_fail) {
  driver->fail_share = 0.1;
  driver->free_bytes = 100 * MiB;
  constexpr int threads = 8;
  constexpr std::uint64_t operations = test::repetitions(125'000);
  // Blocks have up to 4 MiB. Under a sanitizer they have up to 1 MiB, as each step takes its time.
  constexpr unsigned bits = test::is_sanitized ? 12 : 14;
  std::atomic<int> wrong{0};
  // The thread that owns each step of the addresses, by address; 0 for none.
  std::vector<std::atomic<std::uint8_t>> owners((std::uint64_t{1} << 31) / 512);
  const auto claim = [&](std::uint64_t address, std::uint64_t bytes, std::uint8_t from,
                         std::uint8_t to) {
    for (std::uint64_t at = address / 512; at < (address + bytes + 511) / 512; ++at) {
      std::uint8_t expected = from;
      if (!owners[at % owners.size()].compare_exchange_strong(expected, to)) ++wrong;
    }
  };
  // There is one context, and so one range of addresses, which is made before calls fail.
  driver->fail_share = 0;
  free(allocate(512));
  driver->fail_share = 0.1;
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread)
    all.emplace_back([&, thread] {
      std::mt19937_64 random(static_cast<std::uint64_t>(thread));
      struct Mine {
        std::uint64_t address, bytes;
      };
      std::vector<Mine> mine;
      const auto me = static_cast<std::uint8_t>(thread + 1);
      for (std::uint64_t i = 0; i < operations; ++i) {
        if (random() % 100 < 50) {
          const std::uint64_t bytes = 1 + random() % (std::uint64_t{1} << (9 + random() % bits));
          const std::uint64_t address =
              pool.allocate(real, DeviceOrdinal{0}, ContextId{7}, bytes, i);
          if (address == 0) continue;
          claim(address, bytes, 0, me);
          mine.push_back({address, bytes});
        } else if (!mine.empty()) {
          const Mine one = mine[random() % mine.size()];
          std::erase_if(mine, [&](const Mine& m) { return m.address == one.address; });
          Arena* const arena = pool.owner(one.address);
          const auto block = arena->retire(one.address);
          if (!block || block->bytes != one.bytes) ++wrong;
          claim(one.address, one.bytes, me, 0);
          if (block) arena->give(*block, i);
        }
        if (i % 1000 == 0) pool.give_back(real, no_device, UINT64_MAX);
      }
      for (const Mine& one : mine) {
        claim(one.address, one.bytes, me, 0);
        if (!free(one.address)) ++wrong;
      }
    });
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  pool.give_back(real, no_device, UINT64_MAX);
  EXPECT_EQ(taken(), 0u);
  EXPECT_GT(counts().served_count, threads * operations / 10u);
  EXPECT_EQ(counts().held_bytes, 0u);
  pool.set_ending(ContextId{7}, true);
  pool.context_ended(real, ContextId{7});
  EXPECT_TRUE(driver->handles.empty() && driver->mappings.empty() && driver->reservations.empty());
}

}  // namespace
}  // namespace cuwarden::pool
