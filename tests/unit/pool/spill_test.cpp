// Spilled ranges: memory of the device and of the host behind one range of addresses.
#include "runtime_hooks/pool/spill.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/repetitions.hpp"
#include "tests/unit/pool/counting_driver.hpp"
#include "tests/unit/quiet_process.hpp"

namespace cuwarden::pool {
namespace {

class SpillTest : public testing::Test {
 protected:
  SpillTest() { driver = std::make_unique<Driver>(); }
  ~SpillTest() override { EXPECT_EQ(driver->errors, 0) << "calls that the driver would refuse"; }
  std::optional<Range> allocate(std::uint64_t bytes, std::uint64_t context = 7) {
    return spill.allocate(real, asked_for(bytes, context), failure);
  }
  static Range asked_for(std::uint64_t bytes, std::uint64_t context = 7) {
    return {.bytes = bytes, .device = DeviceOrdinal{0}, .context = ContextId{context}};
  }
  CUresult set_access(DeviceOrdinal device, DeviceOrdinal peer, bool may) {
    return peers.set(device, peer, may) ? spill.change_access(real, device, peer, may)
                                        : CUDA_SUCCESS;
  }
  bool free(std::uint64_t address) {
    const auto range = spill.ranges().take(address);
    if (range) spill.give_back(real, *range);
    return range.has_value();
  }
  void expect_nothing_left(std::uint64_t free_bytes = 100 * MiB) const {
    EXPECT_TRUE(driver->handles.empty());
    EXPECT_TRUE(driver->mappings.empty());
    EXPECT_TRUE(driver->reservations.empty());
    EXPECT_EQ(driver->free_bytes, free_bytes);
    EXPECT_EQ(spill.visible_free_bytes(0), 500 * MiB);
  }

  const driver::RealDriver real = functions();
  Peers peers;
  struct Process final : QuietProcess {
    std::uint64_t host_memory_left() noexcept override { return host_has; }
    std::uint64_t host_has = UINT64_MAX;
  } process;
  // Host memory that spilling leaves free, by docs/rescue.md.
  static constexpr std::uint64_t left_to_host = 256 * MiB;
  std::uint64_t& host_has = process.host_has;
  Spill spill{{.most_host_bytes = 500 * MiB, .visible_bytes = 500 * MiB}, peers, process};
  SpillFailure failure{};
};

TEST_F(SpillTest, the_device_is_used_first_except_for_the_bytes_left_to_it) {
  const auto range = allocate(90 * MiB + 5);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->bytes, 90 * MiB + 5);
  EXPECT_EQ(range->mapped_bytes, 92 * MiB);
  EXPECT_EQ(range->host_bytes, 92 * MiB - 36 * MiB);
  EXPECT_EQ(driver->free_bytes, kept);
  for (const auto& [address, mapping] : driver->mappings) EXPECT_EQ(mapping.devices, 1u);
  EXPECT_EQ(spill.visible_free_bytes(0), 500 * MiB - range->host_bytes);
  EXPECT_TRUE(free(range->start));
  expect_nothing_left();
}

TEST_F(SpillTest, a_device_in_pieces_is_taken_piece_by_piece) {
  driver->free_bytes = kept + 40 * MiB;
  driver->largest_handle = 11 * MiB;
  const auto range = allocate(50 * MiB);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->host_bytes, 10 * MiB);
  EXPECT_GT(range->piece_count, 4u);
  EXPECT_EQ(driver->free_bytes, kept);
  EXPECT_TRUE(free(range->start));
  expect_nothing_left(kept + 40 * MiB);
}

TEST_F(SpillTest, requests_that_fit_by_now_and_small_ones_are_left_to_the_driver) {
  driver->free_bytes = 1000 * MiB;
  EXPECT_FALSE(allocate(50 * MiB));
  EXPECT_EQ(failure, SpillFailure::not_needed);
  driver->free_bytes = 0;
  EXPECT_FALSE(allocate(MiB));
  EXPECT_EQ(failure, SpillFailure::too_small);
  expect_nothing_left(0);
  EXPECT_TRUE(allocate(MiB + 1));
}

TEST_F(SpillTest, a_request_that_will_be_refused_takes_no_device_memory) {
  driver->least_free_bytes = UINT64_MAX;
  EXPECT_FALSE(allocate(600 * MiB));
  host_has = left_to_host + 10 * MiB;
  EXPECT_FALSE(allocate(100 * MiB));
  EXPECT_EQ(driver->least_free_bytes, UINT64_MAX) << "no handle was made";
}

// Host memory that is about to be allocated is not yet in the host's own figures.
TEST_F(SpillTest, two_requests_at_once_do_not_take_the_hosts_room_twice) {
  driver->free_bytes = kept;
  host_has = left_to_host + 150 * MiB;
  std::optional<Range> other;
  SpillFailure others_failure{};
  driver->in_create = [&] {
    std::thread([&] { other = spill.allocate(real, asked_for(100 * MiB), others_failure); }).join();
  };
  const auto mine = allocate(100 * MiB);
  EXPECT_TRUE(mine);
  EXPECT_FALSE(other);
  EXPECT_EQ(others_failure, SpillFailure::host_is_full);
}

TEST_F(SpillTest, a_peer_that_comes_while_a_range_is_made_may_use_it) {
  driver->in_set_access = [&] {
    EXPECT_EQ(set_access(DeviceOrdinal{0}, DeviceOrdinal{3}, true), CUDA_SUCCESS);
  };
  ASSERT_TRUE(allocate(90 * MiB));
  for (const auto& [address, mapping] : driver->mappings) EXPECT_EQ(mapping.devices, 0b1001u);
  peers.device_ended(DeviceOrdinal{3});
  const auto next = allocate(10 * MiB);
  ASSERT_TRUE(next);
  EXPECT_EQ(driver->mappings.at(next->start).devices, 1u);
}

TEST_F(SpillTest, a_request_above_the_setting_or_the_hosts_room_changes_nothing) {
  EXPECT_FALSE(allocate(600 * MiB));
  EXPECT_EQ(failure, SpillFailure::cap_reached);
  host_has = left_to_host + 10 * MiB;
  EXPECT_FALSE(allocate(100 * MiB));
  EXPECT_EQ(failure, SpillFailure::host_is_full);
  expect_nothing_left();
  driver->maps_host = false;
  EXPECT_FALSE(allocate(100 * MiB));
  EXPECT_EQ(failure, SpillFailure::not_supported);
  EXPECT_FALSE(allocate(UINT64_MAX - 5));
  EXPECT_EQ(failure, SpillFailure::cap_reached);
  EXPECT_FALSE(allocate(0));
  expect_nothing_left();
}

TEST_F(SpillTest, a_failure_of_any_call_leaves_nothing_behind) {
  for (int calls = 0; calls < 12; ++calls) {
    driver->fail_after = calls;
    const auto range = allocate(90 * MiB);
    driver->fail_after = -1;
    if (range) {
      EXPECT_TRUE(free(range->start));
    } else {
      EXPECT_EQ(failure, SpillFailure::driver_refused) << calls;
    }
    expect_nothing_left();
  }
}

TEST_F(SpillTest, a_driver_that_lacks_a_function_does_not_support_spilling) {
  driver::RealDriver old = real;
  old.cuMemSetAccess = nullptr;
  EXPECT_FALSE(spill.allocate(old, asked_for(9 * MiB), failure));
  EXPECT_EQ(failure, SpillFailure::not_supported);
}

TEST_F(SpillTest, a_range_is_found_from_its_first_to_its_last_requested_byte) {
  const auto range = allocate(90 * MiB + 5);
  ASSERT_TRUE(range);
  Ranges& all = spill.ranges();
  EXPECT_TRUE(all.around(range->start));
  EXPECT_TRUE(all.around(range->start + 90 * MiB + 4));
  EXPECT_FALSE(all.around(range->start + 90 * MiB + 5));
  EXPECT_FALSE(all.around(range->start - 1));
  EXPECT_TRUE(all.starts_at(range->start));
  EXPECT_FALSE(all.starts_at(range->start + 1));
  EXPECT_FALSE(all.take(range->start + 512));
  EXPECT_TRUE(free(range->start));
  EXPECT_FALSE(free(range->start));
  EXPECT_FALSE(all.any());
}

TEST_F(SpillTest, a_contexts_end_releases_its_ranges_and_its_deferred_ones) {
  const auto mine = allocate(70 * MiB, 1), later = allocate(20 * MiB, 1),
             other = allocate(3 * MiB, 2);
  ASSERT_TRUE(mine && later && other);
  spill.defer(*spill.ranges().take(later->start));
  std::vector<std::uint64_t> gone;
  spill.context_ended(real, ContextId{1}, [&](const Range& range) { gone.push_back(range.start); });
  EXPECT_EQ(gone, std::vector{mine->start});
  EXPECT_FALSE(spill.take_deferred(ContextId{1}));
  EXPECT_TRUE(free(other->start));
  expect_nothing_left();
}

TEST_F(SpillTest, a_range_used_in_another_contexts_stream_waits_for_that_context_first) {
  const auto defer_used_in = [&](std::uint64_t context) {
    auto range = spill.ranges().take(allocate(70 * MiB, 1)->start);
    range->used_in = ContextId{context};
    spill.defer(*range);
  };
  defer_used_in(2);
  EXPECT_FALSE(spill.take_deferred(ContextId{1}));
  auto range = spill.take_deferred(ContextId{2});
  ASSERT_TRUE(range);
  range->used_in = {};
  spill.defer(*range);
  EXPECT_FALSE(spill.take_deferred(ContextId{2}));
  range = spill.take_deferred(ContextId{1});
  ASSERT_TRUE(range);
  spill.give_back(real, *range);
  // The end of a context counts as having waited for it; the end of the range's own context
  // releases the range in any case.
  defer_used_in(2);
  spill.context_ended(real, ContextId{2}, [](const Range&) {});
  EXPECT_TRUE(spill.has_deferred());
  range = spill.take_deferred(ContextId{1});
  ASSERT_TRUE(range);
  spill.give_back(real, *range);
  defer_used_in(2);
  spill.context_ended(real, ContextId{1}, [](const Range&) {});
  EXPECT_FALSE(spill.has_deferred());
  expect_nothing_left();
}

TEST_F(SpillTest, peers_may_use_existing_and_later_ranges) {
  const auto first = allocate(70 * MiB);
  EXPECT_EQ(set_access(DeviceOrdinal{0}, DeviceOrdinal{3}, true), CUDA_SUCCESS);
  EXPECT_EQ(set_access(DeviceOrdinal{1}, DeviceOrdinal{2}, true), CUDA_SUCCESS);
  const auto second = allocate(10 * MiB);
  ASSERT_TRUE(first && second);
  for (const auto& [address, mapping] : driver->mappings) EXPECT_EQ(mapping.devices, 0b1001u);
  EXPECT_EQ(set_access(DeviceOrdinal{0}, DeviceOrdinal{3}, false), CUDA_SUCCESS);
  for (const auto& [address, mapping] : driver->mappings) EXPECT_EQ(mapping.devices, 1u);
  EXPECT_TRUE(free(first->start) && free(second->start));
}

// Eight threads allocate, look up and free, while a tenth of the driver's calls fail.
TEST_F(SpillTest, ranges_stay_consistent_while_threads_allocate_and_driver_calls_fail) {
  const std::uint64_t steps = test::repetitions(125'000);
  driver->fail_share = 0.1;
  driver->free_bytes = kept + 10 * MiB;
  std::vector<std::thread> threads;
  std::atomic<int> made{0}, wrong{0};
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Range> mine;
      for (std::uint64_t i = 0; i < steps; ++i) {
        const bool frees = mine.size() > 5 || (!mine.empty() && random() % 2 == 0);
        if (frees) {
          const Range range = mine[random() % mine.size()];
          std::erase_if(mine, [&](const Range& each) { return each.start == range.start; });
          const auto taken = spill.ranges().take(range.start);
          wrong += !taken || taken->bytes != range.bytes;
          if (taken && random() % 8 == 0)
            spill.defer(*taken);
          else if (taken)
            spill.give_back(real, *taken);
          while (const auto deferred = spill.take_deferred(ContextId{t + 1}))
            spill.give_back(real, *deferred);
          continue;
        }
        SpillFailure why{};
        const auto range =
            spill.allocate(real, asked_for(MiB + 1 + random() % (30 * MiB), t + 1), why);
        if (!range) continue;
        ++made;
        mine.push_back(*range);
        const auto found = spill.ranges().around(range->start + range->bytes / 2);
        wrong += !found || found->start != range->start;
      }
      for (const Range& range : mine)
        if (const auto taken = spill.ranges().take(range.start)) spill.give_back(real, *taken);
    });
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t context = 1; context <= 8; ++context)
    while (const auto deferred = spill.take_deferred(ContextId{context}))
      spill.give_back(real, *deferred);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(made, 8 * steps / 20);
  expect_nothing_left(kept + 10 * MiB);
}

}  // namespace
}  // namespace cuwarden::pool
