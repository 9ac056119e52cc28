// An arena on a driver that keeps the memory's content, with blocks whose contents a test can
// check.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "runtime_hooks/pool/device_pool.hpp"
#include "tests/unit/pool/counting_driver.hpp"
#include "tests/unit/pool/fake_pause.hpp"

namespace cuwarden::pool {

// A pool on a driver that keeps the memory's content, with blocks whose contents a test can check.
class MeshingTest : public testing::Test {
 protected:
  // `by_kernel`: true if blocks are copied by a kernel, false if by the driver's copies.
  explicit MeshingTest(bool by_kernel = true)
      : real(by_kernel ? functions_with_kernels() : functions()) {
    driver = std::make_unique<Driver>();
    driver->free_bytes = room;
  }
  ~MeshingTest() override { EXPECT_EQ(driver->errors, 0) << "calls that the driver would refuse"; }

  // Allocates a block of `bytes` and fills it with a number of its own. Returns its address; 0 if
  // the pool cannot serve it.
  std::uint64_t allocate(std::uint64_t bytes) {
    const std::uint64_t address = pool.allocate(real, DeviceOrdinal{0}, ContextId{7}, bytes, 1);
    if (address == 0) return 0;
    const std::uint64_t number = ++last_number;
    driver->each_word(address, bytes, [&](std::uint64_t& word, std::uint64_t) { word = number; });
    blocks[address] = {bytes, number};
    return address;
  }
  // Frees the block at this address.
  void free(std::uint64_t address) {
    Arena* const arena = pool.owner(address);
    const auto block = arena->retire(address);
    ASSERT_TRUE(block);
    arena->give(*block, 1);
    blocks.erase(address);
  }
  // Frees the block with the lowest address.
  void free_one() { free(blocks.begin()->first); }
  // Frees blocks at random, so that about one of `count` is left.
  void keep_one_of(unsigned count) {
    for (auto at = blocks.begin(); at != blocks.end();) {
      const std::uint64_t address = (at++)->first;
      if (random() % count != 0) free(address);
    }
  }
  // Frees all but every eighth of blocks of 1 MiB, so that one page of four has a block. Returns
  // the number of blocks that are left, each in a page of its own.
  std::uint64_t keep_one_of_eight_in_order() {
    for (auto at = blocks.begin(); at != blocks.end();) {
      const std::uint64_t address = (at++)->first;
      if (address / MiB % 8 != 3) free(address);
    }
    return blocks.size();
  }
  // Like keep_one_of(), but also keeps the first block of each run, so that no two runs fit
  // together as a whole. Blocks must begin where runs do.
  void keep_runs_apart(unsigned count) {
    for (auto at = blocks.begin(); at != blocks.end();) {
      const std::uint64_t address = (at++)->first;
      if (random() % count != 0 && !driver->mappings.contains(address)) free(address);
    }
  }
  // Allocates blocks of random sizes until they have `bytes` in all. Sizes are 4 KiB times a power
  // of two below 2 to the power of `most_bits`.
  void fill(std::uint64_t bytes, unsigned most_bits) {
    for (std::uint64_t sum = 0; sum < bytes;) {
      const std::uint64_t size = std::uint64_t{4096} << random() % most_bits;
      ASSERT_NE(allocate(size), 0u);
      sum += size;
    }
  }
  // Returns true if each live block still has its contents.
  bool all_is_right() {
    return std::ranges::all_of(blocks, [](const auto& block) {
      bool is_right = true;
      driver->each_word(block.first, block.second.bytes, [&](std::uint64_t word, std::uint64_t) {
        is_right = is_right && word == block.second.number;
      });
      return is_right;
    });
  }
  // Meshes: moves blocks, so that two pages of addresses share one page of memory, until `needed`
  // bytes are saved. Each pause of the program ends after `batches` batches of moves; there are at
  // most `most_pauses` pauses. `enough`: bytes at which the last pause ends; 0: `needed`.
  // `for_next`: bytes saved beyond `needed` that are kept for the next call. Returns the bytes that
  // were saved.
  std::uint64_t mesh(std::uint64_t needed = 1, int batches = INT32_MAX, int most_pauses = INT32_MAX,
                     std::uint64_t enough = 0, std::uint64_t for_next = 0) {
    FakePause pause(most_pauses, batches);
    const std::uint64_t gained = pool.mesh(real, DeviceOrdinal{0}, pause,
                                           {.least_bytes = needed,
                                            .needed_bytes = needed,
                                            .enough_bytes = std::max(needed, enough),
                                            .verifies = verifies,
                                            .kept_bytes = for_next,
                                            .most_host_bytes = most_host_bytes});
    pauses = pause.asked_for();
    return gained;
  }
  // Returns the pool's figures of the device.
  ArenaCounts counts() { return pool.counts(DeviceOrdinal{0}); }
  // Returns the bytes of the device that the pool has taken.
  std::uint64_t taken() const { return room - driver->free_bytes; }
  // Frees all blocks and ends the context. Fails the test if the pool then still has memory or
  // addresses.
  void expect_all_goes() {
    while (!blocks.empty()) free(blocks.begin()->first);
    pool.give_back(real, no_device, UINT64_MAX);
    pool.give_back_start_memory(real, DeviceOrdinal{0});
    EXPECT_EQ(taken(), 0u);
    EXPECT_EQ(counts().held_bytes, 0u);
    EXPECT_EQ(counts().idle_bytes, 0u);
    EXPECT_TRUE(driver->mappings.empty());
    EXPECT_EQ(driver->reservations.size(), 1u);
    pool.set_ending(ContextId{7}, true);
    pool.context_ended(real, ContextId{7});
    EXPECT_TRUE(driver->handles.empty() && driver->reservations.empty());
  }

  // A live block: its size in bytes, and the number that its contents consist of.
  struct Mine {
    // Size of the block, and the number that fills it.
    std::uint64_t bytes = 0, number = 0;
  };
  static constexpr std::uint64_t room = 400 * MiB;  // free bytes of the device at first
  const driver::RealDriver real;                    // the functions of the fake driver
  Peers peers;             // devices that may use each other's memory: none
  DevicePool pool{peers};  // the pool of device memory under test
  // The live blocks, by their addresses.
  std::map<std::uint64_t, Mine> blocks;
  std::uint64_t last_number = 0;  // number that the last block was filled with
  int pauses = 0;                 // number of pauses that the last mesh() began
  bool verifies = false;          // true if mesh() compares each copy
  // Most bytes of host memory to which mesh() may evict blocks.
  std::uint64_t most_host_bytes = 0;
  std::mt19937_64 random{5};  // decides which blocks are freed, and sizes
};

// Tests with blocks that are copied by a kernel, and by the driver's copies.
class MeshingEitherWayTest : public MeshingTest, public testing::WithParamInterface<bool> {
 protected:
  MeshingEitherWayTest() : MeshingTest(GetParam()) {}
};
// Returns the name of an instance of a MeshingEitherWayTest, by its parameter.
inline std::string way_of_copies(const testing::TestParamInfo<bool>& by_kernel) {
  return by_kernel.param ? "by_kernel" : "by_the_driver";
}

}  // namespace cuwarden::pool
