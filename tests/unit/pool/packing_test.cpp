// Addresses of blocks, compared with a map of every step.
#include "runtime_hooks/pool/packing.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace cuwarden::pool {
namespace {

constexpr std::uint64_t base = std::uint64_t{1} << 40, KiB = 1024, MiB = 1024 * KiB;

TEST(Packing, a_request_that_does_not_fit_is_refused_and_the_hole_stays) {
  Packing all;
  EXPECT_FALSE(all.take(1));
  all.add_region(base, MiB);
  EXPECT_FALSE(all.take(MiB + 1));
  EXPECT_FALSE(all.take(0));
  EXPECT_FALSE(all.take(UINT64_MAX)) << "more than there are addresses";
  const auto whole = all.take(MiB);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->start, base);
  EXPECT_FALSE(all.take(1));
  EXPECT_TRUE(all.give(base));
  EXPECT_FALSE(all.give(base));
  EXPECT_TRUE(all.take(MiB));
}

TEST(Packing, the_smallest_hole_that_is_large_enough_is_taken) {
  Packing all;
  all.add_region(base, 100 * MiB);
  std::vector<std::uint64_t> starts;
  // Holes of 1, 2, ... 12 MiB, with a block after each.
  for (std::uint64_t size = 1; size <= 12; ++size) {
    starts.push_back(all.take(size * MiB)->start);
    all.take(512);
  }
  for (const std::uint64_t start : starts) all.give(start);
  EXPECT_EQ(all.take(7 * MiB - 512)->start, starts[6]);
  EXPECT_EQ(all.take(7 * MiB - 512)->start, starts[7]);
  EXPECT_EQ(all.take(3 * MiB)->start, starts[2]);
  EXPECT_EQ(all.take(511)->start, starts[6] + 7 * MiB - 512) << "the rest of the hole";
}

TEST(Packing, a_retired_block_keeps_its_addresses_and_is_not_found) {
  Packing all;
  all.add_region(base, MiB);
  const auto block = all.take(1000);
  EXPECT_EQ(block->taken_bytes, 1024u);
  EXPECT_TRUE(all.block_around(base + 999));
  EXPECT_FALSE(all.block_around(base + 1000)) << "not asked for";
  ASSERT_TRUE(all.retire(base));
  EXPECT_FALSE(all.retire(base));
  EXPECT_FALSE(all.block_at(base));
  EXPECT_FALSE(all.block_around(base + 1));
  EXPECT_NE(all.take(1000)->start, base);
  all.unretire(base);
  EXPECT_EQ(all.block_at(base)->serial, block->serial);
  EXPECT_TRUE(all.retire(base));
  EXPECT_TRUE(all.give(base));
  const auto again = all.take(1000);
  EXPECT_EQ(again->start, base);
  ASSERT_TRUE(all.retire(base));
  EXPECT_FALSE(all.has_retired(*block)) << "another one is there";
  EXPECT_TRUE(all.has_retired(*again));
  EXPECT_NE(again->serial, block->serial);
}

TEST(Packing, only_a_region_without_blocks_can_be_removed) {
  Packing all;
  all.add_region(base, MiB);
  all.add_region(base + MiB, MiB);
  EXPECT_FALSE(all.take(MiB + 512)) << "neighbours are not joined";
  const auto block = all.take(512);
  EXPECT_FALSE(all.remove_region(block->start / MiB * MiB));
  all.give(block->start);
  EXPECT_TRUE(all.remove_region(base));
  EXPECT_TRUE(all.remove_region(base + MiB));
  EXPECT_FALSE(all.remove_region(base));
  EXPECT_FALSE(all.take(512));
}

// Every step has at most one owner, a block owns all its steps, and when all blocks are given there
// is one hole.
TEST(Packing, a_million_random_operations_agree_with_a_map_of_the_steps) {
  constexpr std::uint64_t region = 64 * MiB;
  Packing all;
  all.add_region(base, region);
  std::vector<std::uint8_t> taken(region / 512);
  struct Mine {
    std::uint64_t start, bytes;
  };
  std::vector<Mine> mine;
  std::mt19937_64 random(11);
  const auto set = [&](std::uint64_t start, std::uint64_t bytes, std::uint8_t to) {
    bool as_expected = true;
    for (std::uint64_t i = (start - base) / 512; i < (start - base + bytes + 511) / 512; ++i) {
      as_expected = as_expected && taken[i] != to;
      taken[i] = to;
    }
    return as_expected;
  };
  std::uint64_t refused = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    if (random() % 100 < 51) {
      const std::uint64_t bytes = 1 + random() % (std::uint64_t{1} << (5 + random() % 14));
      const auto block = all.take(bytes);
      if (!block) {
        ++refused;
        continue;
      }
      ASSERT_EQ(block->start % 512, 0u);
      ASSERT_TRUE(set(block->start, bytes, 1)) << "two have the same address";
      mine.push_back({block->start, bytes});
    } else if (!mine.empty()) {
      const std::size_t which = random() % mine.size();
      const auto found = all.block_around(mine[which].start + random() % mine[which].bytes);
      ASSERT_TRUE(found);
      ASSERT_EQ(found->start, mine[which].start);
      ASSERT_TRUE(all.give(mine[which].start));
      set(mine[which].start, mine[which].bytes, 0);
      mine[which] = mine.back();
      mine.pop_back();
    }
    ASSERT_EQ(all.blocks(), mine.size());
  }
  EXPECT_GT(refused, 100u) << "the region was full now and then";
  for (const Mine& one : mine) ASSERT_TRUE(all.give(one.start));
  EXPECT_TRUE(all.take(region)) << "all holes were joined";
}

// No block is placed in a page that is withheld, whatever is freed in it and beside it.
TEST(Packing, withheld_space_is_not_taken_until_it_is_released) {
  constexpr std::uint64_t page = 64 * KiB, pages = 256;
  Packing all;
  all.add_region(base, pages * page);
  std::vector<bool> withheld(pages);
  std::map<std::uint64_t, std::uint64_t> mine;  // Starts of blocks, with their ends.
  std::mt19937_64 random(12);
  std::uint64_t refused = 0, within = 0;
  for (int i = 0; i < 400'000; ++i) {
    const std::uint64_t dice = random() % 1000;
    if (dice < 510) {
      const std::uint64_t bytes = 512 * (1 + random() % (std::uint64_t{1} << (random() % 9)));
      const auto block = all.take(bytes);
      if (!block) {
        ++refused;
        continue;
      }
      for (std::uint64_t at = (block->start - base) / page;
           at <= (block->start - base + bytes - 1) / page; ++at)
        ASSERT_FALSE(withheld[at]);
      const auto after = mine.lower_bound(block->start);
      ASSERT_TRUE(after == mine.end() || after->first >= block->start + bytes);
      ASSERT_TRUE(after == mine.begin() || std::prev(after)->second <= block->start);
      mine.emplace(block->start, block->start + bytes);
    } else if (dice < 980 && !mine.empty()) {
      auto which = mine.lower_bound(base + random() % (pages * page));
      if (which == mine.end()) which = mine.begin();
      const std::uint64_t first = (which->first - base) / page,
                          last = (which->second - 1 - base) / page;
      ASSERT_TRUE(all.give(which->first));
      mine.erase(which);
      for (std::uint64_t at = first; at <= last; ++at)
        if (withheld[at]) all.withhold(base + at * page, page), ++within;
    } else if (dice >= 980) {
      const std::uint64_t at = random() % pages;
      if (withheld[at]) {
        all.release(base + at * page, page);
      } else {
        all.announce_withheld(1);
        all.withhold(base + at * page, page);
      }
      withheld[at] = !withheld[at];
    }
    if (i % 1000 != 0) continue;
    // The parts that each_taken() visits are those that blocks take of the page.
    const std::uint64_t start = base + random() % pages * page;
    std::uint64_t there = 0, expected = 0, before = start;
    all.each_taken(start, page, [&](std::uint64_t first, std::uint64_t end) {
      EXPECT_GE(first, before);
      there += end - first;
      before = end;
    });
    EXPECT_LE(before, start + page);
    for (const auto& [first, end] : mine)
      if (first < start + page && end > start)
        expected += std::min(end, start + page) - std::max(first, start);
    ASSERT_EQ(there, expected);
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(within, 1000u);
  for (std::uint64_t at = 0; at < pages; ++at)
    if (withheld[at]) all.release(base + at * page, page);
  for (const auto& [first, end] : mine) ASSERT_TRUE(all.give(first));
  EXPECT_TRUE(all.take(pages * page)) << "all holes were joined";
}

}  // namespace
}  // namespace cuwarden::pool
