// Figures of frameworks in the ledger: one row for each pool, device and incident.
#include "runtime_hooks/ledger/write/frameworks.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

constexpr DeviceOrdinal first_device{0}, second_device{1};

TEST_F(LedgerTest, the_latest_figures_of_a_framework_replace_the_earlier_ones) {
  EXPECT_FALSE(writer->frameworks.pytorch_on(first_device));
  writer->frameworks.pytorch(first_device, 100, 80);
  writer->frameworks.pytorch(second_device, 7, 7);
  writer->frameworks.pytorch(first_device, 100, 60);
  const Reader reader = read(*writer);
  ASSERT_EQ(reader.rows(RegionId::frameworks), 3u);
  const auto row = reader.framework_pool(1);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->framework, "PyTorch");
  EXPECT_EQ(row->framework_pool, "");
  EXPECT_EQ(row->device, first_device);
  EXPECT_EQ(row->incident.value, 0u);
  EXPECT_EQ(row->reserved_bytes, 100u);
  EXPECT_EQ(row->allocated_bytes, 60u);
  EXPECT_EQ(row->peak_allocated_bytes, 80u);
  EXPECT_EQ(row->hole_count, unknown_value);
  EXPECT_EQ(writer->frameworks.pytorch_on(first_device)->allocated_bytes, 60u);
}

TEST_F(LedgerTest, pools_devices_and_incidents_have_rows_of_their_own) {
  for (const char* pool : {"", "pinned"})
    for (const DeviceOrdinal device : {first_device, no_device})
      for (const std::uint32_t incident : {0u, 3u})
        for (const std::uint64_t bytes : {5u, 6u})
          writer->frameworks.store(
              {"CuPy", pool, device, {incident}, {}},
              {.reserved_bytes = bytes, .allocated_bytes = bytes - 1, .largest_free_bytes = 1});
  const Reader reader = read(*writer);
  ASSERT_EQ(reader.rows(RegionId::frameworks), 9u);
  for (std::uint64_t row = 1; row <= 8; ++row) {
    EXPECT_EQ(reader.framework_pool(row)->reserved_bytes, 6u);
    EXPECT_EQ(reader.framework_pool(row)->largest_free_bytes, 1u);
  }
}

TEST_F(LedgerTest, blocks_of_a_call_stack_have_a_row_beside_the_pool) {
  writer->frameworks.store({"JAX", "", first_device, {}, {}}, {.reserved_bytes = 9});
  writer->frameworks.store({"JAX", "", first_device, {}, {5}},
                           {.allocated_bytes = 6, .allocated_count = 2});
  const Reader reader = read(*writer);
  ASSERT_EQ(reader.rows(RegionId::frameworks), 3u);
  EXPECT_EQ(reader.framework_pool(1)->stack.value, 0u);
  EXPECT_EQ(reader.framework_pool(2)->stack.value, 5u);
  EXPECT_EQ(reader.framework_pool(2)->allocated_count, 2u);
}

TEST_F(LedgerTest, a_device_beyond_those_that_are_known_has_no_figures) {
  writer->frameworks.pytorch({1000}, 1, 1);
  writer->frameworks.pytorch({-1}, 1, 1);
  EXPECT_EQ(read(*writer).rows(RegionId::frameworks), 1u);
  EXPECT_FALSE(writer->frameworks.pytorch_on({1000}));
}

TEST_F(LedgerTest, threads_that_store_figures_of_one_pool_make_one_row) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 1000; ++i)
        writer->frameworks.store({"JAX", "", first_device, {}, {}}, {i, i});
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read(*writer).rows(RegionId::frameworks), 2u);
}

}  // namespace
}  // namespace cuwarden::ledger
