// An arena on a driver that keeps the memory's content, with blocks whose contents a test can
// check.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <random>

#include "runtime_hooks/pool/device_pool.hpp"
#include "tests/unit/pool/counting_driver.hpp"

namespace cuwarden::pool {

class MeshingTest : public testing::Test {
 protected:
  MeshingTest() {
    driver = std::make_unique<Driver>();
    driver->free_bytes = room;
  }
  ~MeshingTest() override { EXPECT_EQ(driver->errors, 0) << "calls that the driver would refuse"; }

  // Allocates a block and fills it with a number of its own.
  std::uint64_t allocate(std::uint64_t bytes) {
    const std::uint64_t address = pool.allocate(real, DeviceOrdinal{0}, ContextId{7}, bytes, 1);
    if (address == 0) return 0;
    const std::uint64_t number = ++last_number;
    for (std::uint64_t at = 0; at < bytes; at += 512) driver->word(address + at) = number;
    blocks[address] = {bytes, number};
    return address;
  }
  void free(std::uint64_t address) {
    Arena* const arena = pool.owner(address);
    const auto block = arena->retire(address);
    ASSERT_TRUE(block);
    arena->give(*block, 1);
    blocks.erase(address);
  }
  void free_one() { free(blocks.begin()->first); }
  void keep_one_of(unsigned count) {
    for (auto at = blocks.begin(); at != blocks.end();) {
      const std::uint64_t address = (at++)->first;
      if (random() % count != 0) free(address);
    }
  }
  void fill(std::uint64_t bytes, unsigned most_bits) {
    for (std::uint64_t sum = 0; sum < bytes;) {
      const std::uint64_t size = std::uint64_t{4096} << random() % most_bits;
      ASSERT_NE(allocate(size), 0u);
      sum += size;
    }
  }
  bool all_is_right() {
    return std::ranges::all_of(blocks, [](const auto& block) {
      for (std::uint64_t at = 0; at < block.second.bytes; at += 512)
        if (driver->word(block.first + at) != block.second.number) return false;
      return true;
    });
  }
  // Meshes with pauses that end after `batches` batches of moves each, at most `most_pauses` of
  // them. Saves up to `enough` bytes in the last pause; 0: no more than is needed.
  std::uint64_t mesh(std::uint64_t needed = 1, int batches = INT32_MAX, int most_pauses = INT32_MAX,
                     std::uint64_t enough = 0) {
    int left = 0;
    pauses = 0;
    return pool.mesh(real, DeviceOrdinal{0},
                     {[&] { return left = batches, pauses++ < most_pauses; },
                      [&] { return --left <= 0; }, []() -> std::uint64_t { return 10; }},
                     {needed, needed, std::max(needed, enough), verifies});
  }
  ArenaCounts counts() { return pool.counts(DeviceOrdinal{0}); }
  std::uint64_t taken() const { return room - driver->free_bytes; }
  void expect_all_goes() {
    while (!blocks.empty()) free(blocks.begin()->first);
    pool.give_back(real, no_device, UINT64_MAX);
    EXPECT_EQ(taken(), 0u);
    EXPECT_EQ(counts().held_bytes, 0u);
    EXPECT_EQ(counts().idle_bytes, 0u);
    EXPECT_TRUE(driver->mappings.empty());
    EXPECT_EQ(driver->reservations.size(), 1u);
    pool.set_ending(ContextId{7}, true);
    pool.context_ended(real, ContextId{7});
    EXPECT_TRUE(driver->handles.empty() && driver->reservations.empty());
  }

  struct Mine {
    std::uint64_t bytes = 0, number = 0;
  };
  static constexpr std::uint64_t room = 400 * MiB;
  const driver::RealDriver real = functions();
  Peers peers;
  DevicePool pool{peers};
  std::map<std::uint64_t, Mine> blocks;  // by address
  std::uint64_t last_number = 0;
  int pauses = 0;
  bool verifies = false;
  std::mt19937_64 random{5};
};

}  // namespace cuwarden::pool
