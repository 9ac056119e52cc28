// The worst moment of slabs. A test states its ledger row by row.
#include "reporters/tables/worst_slabs.hpp"

#include <gtest/gtest.h>

#include "tests/unit/reporters/fake_ledger.hpp"
#include "tests/unit/reporters/tables/slab_units.hpp"

namespace cuwarden {
namespace {

using test::base;
using test::KiB;
using test::MiB;
using test::page;

class WorstSlabsTest : public testing::Test {
 protected:
  WorstSlabsTest() {
    ledger::SeriesView series;
    series.kind = Kind::device;
    series.device = {0};
    series.worst = {.version = 3,
                    .locked_bytes = 3 * MiB,
                    .page_rounding_bytes = MiB,
                    .time_ns = 42,
                    .pieces_seen = 3,
                    .read_ns = 39,
                    .read_free_bytes = 9 * MiB,
                    .read_memory_pool_idle_bytes = 2 * MiB,
                    .holders_ns = 40,
                    .holders_locked_bytes = 2 * MiB,
                    .holders = {{{{1}, 3, 4 * KiB + MiB - 100, 2 * MiB}}}};
    ledger.series.push_back(series);
    ledger.slab_pages.push_back({{0}, {base + page}, {2, 2048, MiB - 100}});
    ledger.slab_pages.push_back({{0}, {base}, {1, 8, 4 * KiB}});
    ledger.slab_pages.push_back({{0}, {base + 7 * page}, {}});
    ledger.slab_pages.push_back({{5}, {base + 9 * page}, {1, 1, 512}});
  }
  std::map<std::int32_t, WorstSlabs> found(
      const std::map<std::int32_t, Fragmentation>& fragmentations = {}) {
    reasons.clear();
    return find_worst_slabs(ledger.reader(), fragmentations, reasons);
  }

  test::FakeLedger ledger;
  std::vector<std::string> reasons;
};

TEST_F(WorstSlabsTest, the_worst_moments_slabs_are_those_of_its_device_that_held_something) {
  const WorstSlabs worst = found().at(0);
  EXPECT_EQ(worst.moment.time_ns, 42u);
  EXPECT_EQ(worst.moment.locked_bytes, 3 * MiB);
  ASSERT_EQ(worst.slabs.size(), 2u);
  EXPECT_EQ(worst.slabs[0].address, base);
  EXPECT_EQ(worst.slabs[1].live_count, 2u);
  EXPECT_EQ(worst.rounding_bytes, MiB + 100);
  EXPECT_EQ(worst.classes.at(512 * KiB).live_count, 2u);
  EXPECT_EQ(worst.classes.at(4 * KiB).slab_count, 1u);
  ASSERT_EQ(worst.holders().size(), 1u);
  EXPECT_EQ(worst.holders()[0].locked_bytes, 2 * MiB);
  EXPECT_EQ(worst.moment.holders_ns, 40u);
  EXPECT_EQ(worst.moment.pieces_seen, 3u);
  EXPECT_EQ(worst.moment.read_ns, 39u);
  EXPECT_EQ(worst.moment.read_free_bytes, 9 * MiB);
  EXPECT_EQ(worst.moment.read_memory_pool_idle_bytes, 2 * MiB);
}

TEST_F(WorstSlabsTest, nothing_is_claimed_if_the_driver_cuts_slabs_in_another_way) {
  Fragmentation seen;
  EXPECT_EQ(found({{0, seen}}).size(), 1u);
  seen.step_bytes = 256;
  EXPECT_TRUE(found({{0, seen}}).empty());
  seen = {};
  seen.page_bytes = 64 * KiB;
  EXPECT_TRUE(found({{0, seen}}).empty());
  seen = {};
  seen.largest_piece = 2 * MiB - 256;
  EXPECT_TRUE(found({{0, seen}}).empty());
}

TEST_F(WorstSlabsTest, nothing_is_claimed_if_not_all_slabs_were_counted) {
  ledger.series[0].worst.all_counted = false;
  EXPECT_TRUE(found().empty());
  ledger.series[0].worst.all_counted = true;
  ledger.series[0].worst.as_counted = false;
  EXPECT_TRUE(found().empty());
}

TEST_F(WorstSlabsTest, a_missing_claim_is_mentioned_if_much_may_have_been_locked) {
  ledger.series[0].worst.as_counted = false;
  EXPECT_TRUE(found().empty());
  EXPECT_TRUE(reasons.empty()) << "3 MiB";
  ledger.series[0].worst.locked_bytes = std::uint64_t{3} << 30;
  EXPECT_TRUE(found().empty());
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_NE(reasons[0].find("GPU 0: "), std::string::npos) << reasons[0];
  EXPECT_NE(reasons[0].find("another way"), std::string::npos) << reasons[0];
  ledger.series[0].worst.as_counted = true;
  EXPECT_EQ(found().size(), 1u);
  EXPECT_TRUE(reasons.empty());
  ledger.series[0].worst.all_counted = false;
  EXPECT_TRUE(found().empty());
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_NE(reasons[0].find("more slabs"), std::string::npos) << reasons[0];
}

TEST_F(WorstSlabsTest, a_device_that_never_had_a_slab_has_no_worst_moment) {
  ledger.series[0].worst.version = 0;
  EXPECT_TRUE(found().empty());
}

TEST_F(WorstSlabsTest, holders_that_were_never_copied_are_not_listed) {
  ledger.series[0].worst.holders = {};
  EXPECT_TRUE(found().at(0).holders().empty());
}

}  // namespace
}  // namespace cuwarden
