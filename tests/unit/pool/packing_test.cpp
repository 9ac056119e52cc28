// Addresses of blocks, compared with a map of every step.
#include "runtime_hooks/pool/packing/packing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/repetitions.hpp"
#include "tests/unit/pool/units.hpp"

namespace cuwarden::pool {
namespace {

constexpr std::uint64_t base = std::uint64_t{1} << 40;

TEST(Packing, a_request_that_does_not_fit_is_refused_and_the_hole_stays) {
  Packing all;
  EXPECT_FALSE(all.take(1, Placement::in_memory));
  all.add_region(base, MiB);
  EXPECT_FALSE(all.take(MiB + 1, Placement::in_memory));
  EXPECT_FALSE(all.take(0, Placement::in_memory));
  EXPECT_FALSE(all.take(UINT64_MAX, Placement::in_memory)) << "more than there are addresses";
  const auto whole = all.take(MiB, Placement::in_memory);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->start, base);
  EXPECT_FALSE(all.take(1, Placement::in_memory));
  EXPECT_TRUE(all.give(base));
  EXPECT_FALSE(all.give(base));
  EXPECT_TRUE(all.take(MiB, Placement::in_memory));
}

TEST(Packing, the_smallest_of_the_first_eight_holes_that_are_large_enough_is_taken) {
  Packing all;
  all.add_region(base, 200 * MiB);
  std::vector<std::uint64_t> starts;
  // Holes of 20, 19, ... 1 times 64 KiB, with a block after each.
  for (std::uint64_t size = 20; size != 0; --size) {
    starts.push_back(all.take(size * 64 * KiB, Placement::in_memory)->start);
    all.take(512, Placement::in_memory);
  }
  for (const std::uint64_t start : starts) all.give(start);
  const auto hole_of = [&](std::uint64_t size) { return starts[20 - size]; };
  EXPECT_EQ(all.take(64 * KiB, Placement::in_memory)->start, hole_of(13)) << "the eighth";
  EXPECT_EQ(all.take(17 * 64 * KiB, Placement::in_memory)->start, hole_of(17));
  EXPECT_EQ(all.take(17 * 64 * KiB, Placement::in_memory)->start, hole_of(18));
  EXPECT_EQ(all.take(64 * KiB, Placement::in_memory)->start, hole_of(18) + 17 * 64 * KiB)
      << "the rest of a hole, as large as the block";
}

TEST(Packing, a_small_block_lies_in_one_page_if_that_is_asked_for) {
  Packing all;
  all.add_region(base, 100 * MiB);
  constexpr std::uint64_t third = 700 * KiB;
  EXPECT_EQ(all.take(third, Placement::within_page)->start, base);
  EXPECT_EQ(all.take(third, Placement::within_page)->start, base + third);
  EXPECT_EQ(all.take(third, Placement::within_page)->start, base + page);
  EXPECT_EQ(all.take(page - 2 * third, Placement::within_page)->start, base + 2 * third)
      << "the rest of the first page";
  const auto rest = all.take(third, Placement::within_page);
  const auto crossing = all.take(third, Placement::in_memory);
  EXPECT_EQ(crossing->start, rest->start + third);
  EXPECT_LT(crossing->start, base + 2 * page);
  EXPECT_GT(crossing->start + third, base + 2 * page);
  const auto large = all.take(page - 512, Placement::within_page);
  EXPECT_EQ(large->start, crossing->start + third) << "more than half a page may cross its end";
}

TEST(Packing, memory_is_used_before_bare_addresses) {
  Packing all;
  all.add_bare_pages(base, 8 * page);
  EXPECT_FALSE(all.take(512, Placement::in_memory));
  EXPECT_EQ(all.take(page / 2, Placement::anywhere)->start, base);
  // Memory comes to the third page, too; the block has brought some to the first one.
  all.expect_memory(1);
  all.gain_memory(base + 2 * page, page);
  EXPECT_EQ(all.take(page / 2 + 512, Placement::in_memory)->start, base + 2 * page);
  EXPECT_EQ(all.take(page / 2, Placement::in_memory)->start, base + page / 2);
  EXPECT_FALSE(all.take(page / 2, Placement::in_memory));
  const auto bare = all.take(page, Placement::anywhere);
  EXPECT_EQ(bare->start, base + page);
  EXPECT_EQ(all.take(512, Placement::within_page)->start, base + 2 * page + page / 2 + 512);
  // Begins in the third page, where less is left, and goes on in bare addresses.
  const auto joined = all.take(page, Placement::anywhere);
  EXPECT_EQ(joined->start, base + 2 * page + page / 2 + 1024);
  EXPECT_TRUE(all.take(page / 2 - 1024, Placement::in_memory)) << "the rest of the fourth page";
  // A page whose memory has gone is not used as a hole.
  ASSERT_TRUE(all.give(bare->start));
  all.lose_memory(base + page, page);
  EXPECT_FALSE(all.take(page / 2, Placement::in_memory));
  EXPECT_EQ(all.take(page / 2, Placement::anywhere)->start, base + page);
}

TEST(Packing, a_retired_block_keeps_its_addresses_and_is_not_found) {
  Packing all;
  all.add_region(base, MiB);
  const auto block = all.take(1000, Placement::in_memory);
  EXPECT_EQ(block->taken_bytes, 1024u);
  EXPECT_TRUE(all.block_around(base + 999));
  EXPECT_FALSE(all.block_around(base + 1000)) << "not asked for";
  ASSERT_TRUE(all.retire(base));
  EXPECT_FALSE(all.retire(base));
  EXPECT_FALSE(all.block_at(base));
  EXPECT_FALSE(all.block_around(base + 1));
  EXPECT_NE(all.take(1000, Placement::in_memory)->start, base);
  all.unretire(base);
  EXPECT_EQ(all.block_at(base)->serial, block->serial);
  EXPECT_TRUE(all.retire(base));
  EXPECT_TRUE(all.give(base));
  const auto again = all.take(1000, Placement::in_memory);
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
  EXPECT_FALSE(all.take(MiB + 512, Placement::in_memory)) << "neighbours are not joined";
  const auto block = all.take(512, Placement::in_memory);
  EXPECT_FALSE(all.remove_region(block->start / MiB * MiB));
  all.give(block->start);
  EXPECT_TRUE(all.remove_region(base));
  EXPECT_TRUE(all.remove_region(base + MiB));
  EXPECT_FALSE(all.remove_region(base));
  EXPECT_FALSE(all.take(512, Placement::in_memory));
}

// Every step has at most one owner, a block owns all its steps, and when all blocks are given there
// is one hole.
TEST(Packing, random_operations_agree_with_a_map_of_the_steps) {
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
  const std::uint64_t operations = test::repetitions(1'000'000);
  for (std::uint64_t i = 0; i < operations; ++i) {
    if (random() % 100 < 51) {
      const std::uint64_t bytes = 1 + random() % (std::uint64_t{1} << (5 + random() % 14));
      const auto block = all.take(bytes, Placement::in_memory);
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
  EXPECT_GT(refused, operations / 10'000) << "the region was full now and then";
  for (const Mine& one : mine) ASSERT_TRUE(all.give(one.start));
  EXPECT_TRUE(all.take(region, Placement::in_memory)) << "all holes were joined";
}

// A block lies where a search from the first address on would put it. Pages that lose and gain
// memory at any time change nothing else.
TEST(Packing, random_blocks_lie_at_the_first_addresses_that_have_room) {
  constexpr std::uint64_t pages = 24, steps = page / 512, none = pages * steps;
  Packing all;
  all.add_bare_pages(base, pages * page);
  std::vector<bool> taken(pages * steps), has_memory(pages);
  std::map<std::uint64_t, std::uint64_t>
      mine;  // First steps of blocks, with their numbers of steps.
  std::mt19937_64 random(13);
  const auto is_free = [&](std::uint64_t which) {
    const auto first = taken.begin() + static_cast<std::ptrdiff_t>(which * steps);
    return std::none_of(first, first + steps, [](bool is) { return is; });
  };
  // Returns the first step of the smallest of the first eight parts that are large enough, of the
  // stretches that are free and have memory. A step belongs to a part if `counts` it; parts end
  // with the stretch, and with the page if `in_page`.
  const auto smallest_part = [&](std::uint64_t count, const auto& counts, bool in_page) {
    std::uint64_t best = none, best_size = UINT64_MAX;
    int found = 0;
    for (std::uint64_t at = 0; at < none && found < 8;) {
      std::uint64_t own_best = none, own_size = UINT64_MAX, run = 0;
      bool is_free_here = false;
      for (; at <= none; ++at) {
        is_free_here = at < none && !taken[at] && has_memory[at / steps];
        if (run != 0 && (!is_free_here || !counts(at) || (in_page && at % steps == 0))) {
          if (run >= count && run < own_size) own_best = at - run, own_size = run;
          run = 0;
        }
        if (!is_free_here) break;
        if (counts(at)) ++run;
      }
      ++at;
      if (own_best == none) continue;
      ++found;
      if (own_size < best_size) best = own_best, best_size = own_size;
    }
    return best;
  };
  const auto address_for = [&](std::uint64_t count, bool within_page) {
    std::vector<bool> is_used(pages);
    for (std::uint64_t which = 0; which < pages; ++which) is_used[which] = !is_free(which);
    const auto used = [&](std::uint64_t at) -> bool { return is_used[at / steps]; };
    const auto unused = [&](std::uint64_t at) -> bool { return !is_used[at / steps]; };
    const auto any = [](std::uint64_t) { return true; };
    const std::uint64_t in_used = smallest_part(count, used, within_page);
    if (in_used != none) return in_used;
    return within_page ? smallest_part(count, unused, false) : smallest_part(count, any, false);
  };
  std::uint64_t in_holes = 0, in_free_pages = 0, refused = 0;
  const std::uint64_t operations = test::repetitions(8'000);
  for (std::uint64_t i = 0; i < operations; ++i) {
    const std::uint64_t dice = random() % 100;
    if (dice < (i / 400 % 2 == 0 ? 60u : 20u)) {  // the pool fills up, and empties again
      const std::uint64_t count = 1 + random() % (std::uint64_t{1} << (3 + random() % 11));
      const auto placement = static_cast<Placement>(random() % 3);
      const bool within = placement == Placement::within_page && count <= steps / 2;
      const std::uint64_t expected = address_for(count, within);
      const auto block = all.take(count * 512, placement);
      if (!block) {
        ++refused;
        ASSERT_EQ(expected, none);
        continue;
      }
      const std::uint64_t first = (block->start - base) / 512;
      if (expected != none) {
        ++in_holes;
        ASSERT_EQ(first, expected);
      } else {
        ++in_free_pages;
        ASSERT_FALSE(within && first / steps != (first + count - 1) / steps);
      }
      for (std::uint64_t at = first; at < first + count; ++at) {
        ASSERT_FALSE(taken[at]);
        ASSERT_TRUE(has_memory[at / steps] || placement != Placement::in_memory);
        taken[at] = true;
      }
      for (std::uint64_t at = first; at < first + count; ++at) has_memory[at / steps] = true;
      mine.emplace(first, count);
    } else if (dice < 80 && !mine.empty()) {
      auto which = mine.lower_bound(random() % none);
      if (which == mine.end()) which = mine.begin();
      ASSERT_TRUE(all.give(base + which->first * 512));
      std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(which->first), which->second, false);
      mine.erase(which);
    } else {
      const std::uint64_t gains = random() % pages;
      for (std::uint64_t which = 0; which < pages; ++which) {
        if (!is_free(which)) continue;
        if (which == gains)
          all.expect_memory(1), all.gain_memory(base + which * page, page);
        else
          all.lose_memory(base + which * page, page);
        has_memory[which] = which == gains;
      }
    }
    ASSERT_EQ(all.taken_bytes(),
              512u * static_cast<std::uint64_t>(std::count(taken.begin(), taken.end(), true)));
  }
  EXPECT_GT(in_holes, operations / 8);
  EXPECT_GT(in_free_pages, operations / 100);
  EXPECT_GT(refused, operations / 270);
  for (const auto& [first, count] : mine) ASSERT_TRUE(all.give(base + first * 512));
  all.expect_memory(pages);
  all.gain_memory(base, pages * page);
  EXPECT_TRUE(all.take(pages * page, Placement::in_memory)) << "everything was joined";
}

// No block is placed in a page that is withheld, whatever is freed in it and beside it.
TEST(Packing, withheld_space_is_not_taken_until_it_is_released) {
  constexpr std::uint64_t part = 64 * KiB, parts = 256;
  Packing all;
  all.add_region(base, parts * part);
  std::vector<bool> withheld(parts);
  std::map<std::uint64_t, std::uint64_t> mine;  // Starts of blocks, with their ends.
  std::mt19937_64 random(12);
  std::uint64_t refused = 0, within = 0;
  const std::uint64_t operations = test::repetitions(400'000);
  for (std::uint64_t i = 0; i < operations; ++i) {
    const std::uint64_t dice = random() % 1000;
    if (dice < 510) {
      const std::uint64_t bytes = 512 * (1 + random() % (std::uint64_t{1} << (random() % 9)));
      const auto block = all.take(bytes, Placement::in_memory);
      if (!block) {
        ++refused;
        continue;
      }
      for (std::uint64_t at = (block->start - base) / part;
           at <= (block->start - base + bytes - 1) / part; ++at)
        ASSERT_FALSE(withheld[at]);
      const auto after = mine.lower_bound(block->start);
      ASSERT_TRUE(after == mine.end() || after->first >= block->start + bytes);
      ASSERT_TRUE(after == mine.begin() || std::prev(after)->second <= block->start);
      mine.emplace(block->start, block->start + bytes);
    } else if (dice < 980 && !mine.empty()) {
      auto which = mine.lower_bound(base + random() % (parts * part));
      if (which == mine.end()) which = mine.begin();
      const std::uint64_t first = (which->first - base) / part,
                          last = (which->second - 1 - base) / part;
      ASSERT_TRUE(all.give(which->first));
      mine.erase(which);
      for (std::uint64_t at = first; at <= last; ++at)
        if (withheld[at]) all.withhold(base + at * part, part), ++within;
    } else if (dice >= 980) {
      const std::uint64_t at = random() % parts;
      if (withheld[at]) {
        all.release(base + at * part, part);
      } else {
        all.announce_withheld(1);
        all.withhold(base + at * part, part);
      }
      withheld[at] = !withheld[at];
    }
    if (i % 1000 != 0) continue;
    // The parts that each_taken() visits are those that blocks take of the page.
    const std::uint64_t start = base + random() % parts * part;
    std::uint64_t there = 0, expected = 0, before = start;
    all.each_taken(start, part, [&](std::uint64_t first, std::uint64_t end) {
      EXPECT_GE(first, before);
      there += end - first;
      before = end;
    });
    EXPECT_LE(before, start + part);
    for (const auto& [first, end] : mine)
      if (first < start + part && end > start)
        expected += std::min(end, start + part) - std::max(first, start);
    ASSERT_EQ(there, expected);
  }
  EXPECT_GT(refused, operations / 4'000);
  EXPECT_GT(within, operations / 400);
  for (std::uint64_t at = 0; at < parts; ++at)
    if (withheld[at]) all.release(base + at * part, part);
  for (const auto& [first, end] : mine) ASSERT_TRUE(all.give(first));
  EXPECT_TRUE(all.take(parts * part, Placement::in_memory)) << "all holes were joined";
}

}  // namespace
}  // namespace cuwarden::pool
