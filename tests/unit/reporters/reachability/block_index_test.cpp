#include "reporters/reachability/block_index.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace cuwarden::reachability {
namespace {

std::set<std::uint32_t> ids_at(const BlockIndex& index, std::uint64_t word) {
  std::set<std::uint32_t> ids;
  index.each_block_at(word, [&](const Block& block) { ids.insert(block.id); });
  return ids;
}

TEST(BlockIndex, finds_a_block_from_its_first_to_its_last_byte) {
  const BlockIndex index(std::vector<Block>{{0x7f00'0000'1000, 0x100, 1}});
  EXPECT_EQ(ids_at(index, 0x7f00'0000'0fff), std::set<std::uint32_t>{});
  EXPECT_EQ(ids_at(index, 0x7f00'0000'1000), std::set<std::uint32_t>{1});
  EXPECT_EQ(ids_at(index, 0x7f00'0000'10ff), std::set<std::uint32_t>{1});
  EXPECT_EQ(ids_at(index, 0x7f00'0000'1100), std::set<std::uint32_t>{});
}

TEST(BlockIndex, finds_all_blocks_of_one_start) {
  const BlockIndex index(std::vector<Block>{{0x5000, 8, 1}, {0x5000, 64, 2}, {0x6000, 1, 3}});
  EXPECT_EQ(ids_at(index, 0x5000), (std::set<std::uint32_t>{1, 2}));
  EXPECT_EQ(ids_at(index, 0x5010), std::set<std::uint32_t>{2});
  EXPECT_EQ(ids_at(index, 0x6000), std::set<std::uint32_t>{3});
  EXPECT_EQ(ids_at(index, 0x6001), std::set<std::uint32_t>{});
}

TEST(BlockIndex, without_blocks_finds_nothing) {
  const BlockIndex index{std::vector<Block>{}};
  EXPECT_TRUE(index.empty());
  EXPECT_FALSE(index.contains(0));
  EXPECT_FALSE(index.contains(UINT64_MAX));
}

// A block of 4 TiB has too many small granules for the filter.
TEST(BlockIndex, holds_blocks_of_any_size) {
  const std::vector<Block> blocks{{0x10'0000'0000, std::uint64_t{4} << 40, 1}, {0x7000, 8, 2}};
  const BlockIndex index(blocks);
  EXPECT_TRUE(index.contains(0x10'0000'0000 + (std::uint64_t{3} << 40)));
  EXPECT_TRUE(index.contains(0x7007));
  EXPECT_FALSE(index.contains(0x7008));
}

TEST(BlockIndex, holds_more_blocks_than_the_filter_has_room_for) {
  std::vector<Block> blocks;
  for (std::uint32_t i = 0; i < 300'000; ++i)
    blocks.push_back({0x7f00'0000'0000 + i * 0x20'0000ULL, 4096, i});
  const BlockIndex index(blocks);
  EXPECT_EQ(ids_at(index, blocks[299'999].start + 4095), std::set<std::uint32_t>{299'999});
  EXPECT_EQ(ids_at(index, blocks[299'999].start + 4096), std::set<std::uint32_t>{});
}

// Compares with a search through all blocks, for words near blocks and for other ones, at all
// lengths of the last vector.
TEST(BlockIndex, candidates_hold_each_word_that_points_to_a_block) {
  std::mt19937_64 random(7);
  std::vector<Block> blocks;
  for (std::uint32_t i = 0; i < 500; ++i)
    blocks.push_back(
        {0x7f00'0000'0000 + (random() % 4096) * 0x20'0000, 1 + random() % 0x10'0000, i});
  const BlockIndex index(blocks);
  for (std::size_t length = 0; length < 70; ++length) {
    std::vector<std::uint64_t> words(length);
    for (std::uint64_t& word : words)
      word = random() % 2 == 0 ? random() : blocks[random() % blocks.size()].start + random() % 16;
    std::set<std::size_t> candidates;
    index.each_candidate(words, [&](std::size_t i) { candidates.insert(i); });
    for (std::size_t i = 0; i < words.size(); ++i) {
      bool points = false;
      for (const Block& block : blocks)
        points = points || (words[i] >= block.start && words[i] - block.start < block.bytes);
      EXPECT_TRUE(!points || candidates.contains(i)) << words[i];
      EXPECT_EQ(index.contains(words[i]), points) << words[i];
    }
  }
}

}  // namespace
}  // namespace cuwarden::reachability
