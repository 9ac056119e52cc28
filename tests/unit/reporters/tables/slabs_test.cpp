// Slabs as they are worked out from addresses and sizes, and the call stacks that the report lists
// for each of them. A test states its ledger row by row.
#include "reporters/tables/slabs.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "reporters/tables/fragmentation_tables.hpp"
#include "reporters/tables/incident_fragmentation.hpp"
#include "reporters/tables/incident_tables.hpp"
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

  void add_many(GroupId in, std::uint64_t address, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) add(in, address + i * 4 * KiB, 4 * KiB);
  }
  // Returns the ids of the stacks that the report lists for each slab at the end, by address.
  std::vector<std::vector<model::Id>> stacks_of_slabs() {
    const ledger::Reader reader = ledger.reader();
    const Fragmentations all = find_fragmentation(reader);
    CallFrames frames(reader);
    add_stacks(reader, all, frames);
    std::vector<std::vector<model::Id>> stacks;
    const auto keep = [&](const model::Slab& slab) { stacks.push_back(slab.stacks); };
    put_slab_map(reader, all, frames, Put<model::Slab>(keep));
    return stacks;
  }
  model::Id stack_of(GroupId id) const { return ledger.groups[id.value - 1].stack.value; }

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

TEST_F(Slabs, a_slab_lists_the_stacks_of_its_own_pieces_most_pieces_first) {
  const GroupId few = group(0), many = group(0), elsewhere = group(0);
  add_many(few, base, 2);
  add_many(many, base + MiB, 5);
  add_many(elsewhere, base + page, 9);
  add_many(few, base + page + MiB, 1);
  const auto stacks = stacks_of_slabs();
  ASSERT_EQ(stacks.size(), 2u);
  EXPECT_EQ(stacks[0], std::vector<model::Id>({stack_of(many), stack_of(few)}));
  EXPECT_EQ(stacks[1], std::vector<model::Id>({stack_of(elsewhere), stack_of(few)}));
}

TEST_F(Slabs, the_four_stacks_with_most_pieces_of_a_slab_are_listed) {
  std::vector<GroupId> groups;
  for (std::uint64_t i = 0; i < 7; ++i) groups.push_back(group(0));
  const std::uint64_t counts[] = {3, 9, 1, 4, 9, 2, 4};
  std::uint64_t address = base;
  // The pieces of the groups lie among each other.
  for (std::uint64_t round = 0; round < 9; ++round)
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (round < counts[i]) add(groups[i], address += 4 * KiB, 4 * KiB);
  const auto stacks = stacks_of_slabs();
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_EQ(stacks[0], std::vector<model::Id>({stack_of(groups[1]), stack_of(groups[4]),
                                               stack_of(groups[3]), stack_of(groups[6])}));
}

TEST_F(Slabs, a_stack_that_called_two_functions_is_listed_once_and_an_unknown_one_not_at_all) {
  const StackId stack = ledger.add_stack({0x1000});
  const GroupId one = ledger.add_group(stack, {0}, Kind::device, {0});
  const GroupId other = ledger.add_group(stack, {1}, Kind::device, {0});
  const GroupId unknown = ledger.add_group({0}, {0}, Kind::device, {0});
  add_many(unknown, base, 9);
  add_many(one, base + MiB / 2, 2);
  add_many(other, base + MiB, 2);
  EXPECT_EQ(stacks_of_slabs(), std::vector<std::vector<model::Id>>({{stack.value}}));
}

TEST_F(Slabs, the_slabs_of_an_incident_list_the_stacks_of_groups_that_are_gone_at_the_end) {
  const GroupId gone = group(0), also = group(0);
  ledger.incidents.emplace_back().id = {1};
  ledger.incidents.back().group = gone;
  ledger.incident_slabs.push_back(
      {{.address = {base}, .live_count = 3, .live_bytes = 30, .groups = {also, gone}}, {1}});
  ledger.incident_slabs.push_back(
      {{.address = {base + page}, .live_count = 1, .live_bytes = 8, .groups = {GroupId{99}, gone}},
       {1}});
  const ledger::Reader reader = ledger.reader();
  const auto incidents = all_incidents(reader);
  CallFrames frames(reader);
  add_stacks(reader, incidents, frames);
  std::vector<model::IncidentSlab> slabs;
  const auto keep = [&](const model::IncidentSlab& slab) { slabs.push_back(slab); };
  put_incident_slab_map(reader, incidents, frames, Put<model::IncidentSlab>(keep));
  ASSERT_EQ(slabs.size(), 2u);
  EXPECT_EQ(slabs[0].live, 3u);
  EXPECT_EQ(slabs[0].stacks, std::vector<model::Id>({stack_of(also), stack_of(gone)}));
  EXPECT_EQ(slabs[1].stacks, std::vector<model::Id>({stack_of(gone)}));
}

}  // namespace
}  // namespace cuwarden
