// Slabs as they are worked out from addresses and sizes. A test states its ledger row by row.
#include "reporters/tables/slabs.hpp"

#include <gtest/gtest.h>

#include "tests/unit/reporters/fake_ledger.hpp"
#include "tests/unit/reporters/tables/slab_units.hpp"

namespace cuwarden {
namespace {

using test::base;
using test::KiB;
using test::MiB;
using test::page;

class Slabs : public testing::Test {
 protected:
  GroupId group(std::int32_t device, Kind kind = Kind::device) {
    return ledger.add_group(ledger.add_stack({0x1000}), {0}, kind, {device});
  }
  void add(GroupId in, std::uint64_t address, std::uint64_t bytes, std::uint64_t time_ns = 1) {
    ledger.add_record(in, address, bytes, time_ns);
  }
  Fragmentation found(std::int32_t device = 0) {
    const auto all = find_fragmentation(ledger.reader());
    const auto one = all.find(device);
    return one == all.end() ? Fragmentation{} : one->second;
  }

  test::FakeLedger ledger;
};

TEST_F(Slabs, pieces_of_many_sizes_share_a_page) {
  const GroupId here = group(0);
  add(here, base, 4 * KiB);
  add(here, base + 64 * KiB, 100);
  add(here, base + MiB, MiB);
  const Fragmentation all = found();
  ASSERT_EQ(all.slabs.size(), 1u);
  EXPECT_EQ(all.slabs[0].address, base);
  EXPECT_EQ(all.slabs[0].live_count, 3u);
  EXPECT_EQ(all.slabs[0].class_bytes, MiB) << "most of its bytes";
  EXPECT_EQ(all.rounding_bytes, 512u - 100);
  EXPECT_EQ(all.locked_bytes, page - MiB - 4 * KiB - 512);
  EXPECT_EQ(all.largest_piece, MiB);
}

TEST_F(Slabs, large_allocations_are_rounded_to_pages) {
  const GroupId here = group(0);
  add(here, base, 3 * MiB);
  add(here, base + 2 * page, page);
  add(here, base + 3 * page, page + 1);
  const Fragmentation all = found();
  EXPECT_TRUE(all.slabs.empty());
  EXPECT_EQ(all.rounding_bytes, MiB + page - 1);
  EXPECT_EQ(all.locked_bytes, 0u);
}

TEST_F(Slabs, a_piece_alone_in_its_page_is_in_a_slab_if_another_like_it_would_fit) {
  const GroupId here = group(0);
  add(here, base, MiB);
  add(here, base + page, MiB + 512);
  const Fragmentation all = found();
  ASSERT_EQ(all.slabs.size(), 1u);
  EXPECT_EQ(all.locked_bytes, MiB);
  EXPECT_EQ(all.rounding_bytes, MiB - 512);
  EXPECT_EQ(all.largest_piece, 0u) << "none was seen to share a page";
}

// The driver gives the rest of a page with a piece of 1.5 MiB to smaller pieces (measured).
TEST_F(Slabs, large_pieces_share_their_pages_with_small_ones) {
  const GroupId here = group(0);
  add(here, base, page - MiB / 2);
  add(here, base + page - MiB / 2, 4 * KiB);
  add(here, base + page, page - 512);
  add(here, base + page + page - 512, 512);
  add(here, base + 2 * page, page - MiB / 2);
  const Fragmentation all = found();
  ASSERT_EQ(all.slabs.size(), 2u);
  EXPECT_EQ(all.locked_bytes, MiB / 2 - 4 * KiB);
  EXPECT_EQ(all.rounding_bytes, MiB / 2) << "the rest of the page whose piece is alone";
  EXPECT_EQ(all.largest_piece, page - 512);
}

// A snapshot may read an allocation that is freed meanwhile, and another one that gets its address.
TEST_F(Slabs, the_older_of_two_overlapping_allocations_is_gone) {
  const GroupId here = group(0);
  add(here, base + 512, 4 * KiB, 1);
  add(here, base, 64 * MiB, 2);
  add(here, base + 64 * MiB, 3 * MiB, 3);
  Fragmentation all = found();
  EXPECT_TRUE(all.slabs.empty());
  EXPECT_EQ(all.largest_piece, 0u);
  EXPECT_EQ(all.rounding_bytes, MiB);

  ledger.records.clear();
  add(here, base, 64 * MiB, 1);
  add(here, base + 512, 4 * KiB, 2);
  all = found();
  ASSERT_EQ(all.slabs.size(), 1u);
  EXPECT_EQ(all.rounding_bytes, 0u);
}

TEST_F(Slabs, addresses_that_no_driver_hands_out_do_no_harm) {
  const GroupId here = group(0);
  add(here, 0x1000, (std::uint64_t{1} << 63) + 1);
  add(here, 0x2000, 512, 2);
  add(here, UINT64_MAX - 100, 50);
  add(here, UINT64_MAX - 10, 500);  // wraps around the end of all addresses
  add(here, base, 0);
  const Fragmentation all = found();
  for (const LiveSlab& slab : all.slabs) EXPECT_LE(slab.cut_bytes, all.page_bytes);
}

TEST_F(Slabs, devices_and_other_kinds_are_kept_apart) {
  add(group(0), base, 64 * KiB);
  add(group(1), base + 64 * KiB, 64 * KiB);
  add(group(0, Kind::stream_ordered), base + 128 * KiB, 64 * KiB);
  add(group(-1, Kind::pinned), base + 192 * KiB, 64 * KiB);
  EXPECT_EQ(found(0).locked_bytes, page - 64 * KiB);
  EXPECT_EQ(found(1).locked_bytes, page - 64 * KiB);
  EXPECT_EQ(found(0).holders.size(), 1u);
}

TEST_F(Slabs, locked_bytes_are_shared_among_the_groups_that_lock_them) {
  const GroupId one = group(0), other = group(0);
  add(one, base, 4 * KiB);
  add(other, base + 4 * KiB, 4 * KiB);
  add(other, base + page, 4 * KiB);
  const Fragmentation all = found();
  EXPECT_EQ(all.holders.at(one.value).locked_bytes, (page - 8 * KiB) / 2);
  EXPECT_EQ(all.holders.at(other.value).locked_bytes, (page - 8 * KiB) / 2 + page - 4 * KiB);
  EXPECT_EQ(all.holders.at(other.value).count, 2u);
}

}  // namespace
}  // namespace cuwarden
