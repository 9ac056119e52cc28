#include "runtime_hooks/hooks/graphs/node_tables.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/thread_time.hpp"

namespace cuwarden::hooks {
namespace {

constexpr std::uint64_t handle(std::uint64_t i) { return 0x7f00'0000'0000 + i * 0x340; }

std::vector<std::uint64_t> addresses(ExecEffects& effects, std::uint64_t exec, bool allocates) {
  std::vector<std::uint64_t> found;
  effects.for_each(exec, allocates, [&](const Effect& e) { found.push_back(e.address); });
  std::sort(found.begin(), found.end());
  return found;
}

TEST(ExecEffects, each_graph_gets_all_of_its_own_effects) {
  const auto effects = std::make_unique<ExecEffects>();
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(effects->add({handle(1), 1000 + i, 8, GroupId{1}, true}));
    ASSERT_TRUE(effects->add({handle(2), 2000 + i, 8, GroupId{1}, i % 2 == 0}));
  }
  const auto first = addresses(*effects, handle(1), true);
  ASSERT_EQ(first.size(), 100u);
  EXPECT_EQ(first.front(), 1000u);
  EXPECT_EQ(first.back(), 1099u);
  EXPECT_EQ(addresses(*effects, handle(2), true).size(), 50u);
  EXPECT_EQ(addresses(*effects, handle(2), false).size(), 50u);
  EXPECT_TRUE(addresses(*effects, handle(3), true).empty());
}

TEST(ExecEffects, a_forgotten_graphs_rows_are_used_again) {
  const auto effects = std::make_unique<ExecEffects>();
  std::uint64_t count = 0;
  while (effects->add({handle(count % 50), count, 8, GroupId{1}, true})) ++count;
  ASSERT_GE(count, 4000u);
  const std::size_t gone = addresses(*effects, handle(7), true).size();
  effects->forget(handle(7));
  EXPECT_TRUE(addresses(*effects, handle(7), true).empty());
  EXPECT_FALSE(addresses(*effects, handle(8), true).empty());
  for (std::size_t i = 0; i < gone; ++i)
    EXPECT_TRUE(effects->add({handle(1000), i + 1, 8, GroupId{1}, true}));
  EXPECT_FALSE(effects->add({handle(1000), 9999, 8, GroupId{1}, true}));
  EXPECT_EQ(addresses(*effects, handle(1000), true).size(), gone);
}

// Returns the nanoseconds that 100 launches compute, of different executable graphs, in a table of
// `graphs` such graphs with one effect each. `known`: true for graphs that are in the table.
std::int64_t cost_of_launches(std::uint64_t graphs, bool known) {
  const auto effects = std::make_unique<ExecEffects>();
  for (std::uint64_t i = 0; i < graphs; ++i)
    EXPECT_TRUE(effects->add({handle(i), i + 1, 8, GroupId{1}, true}));
  std::uint64_t next = 0, launches = 0, found = 0;
  const std::int64_t cost_ns = least_computed_ns(30, [&] {
    for (int i = 0; i < 100; ++i, ++next, ++launches)
      effects->for_each(handle(known ? next % graphs : 100'000 + next), true,
                        [&](const Effect&) { ++found; });
  });
  EXPECT_EQ(found, known ? launches : 0);
  return cost_ns;
}

// Rows that a launch visits have no counter, so times are compared: a search through all rows would
// take 100 times as long among 4000 graphs as it takes among 40.
TEST(ExecEffects, a_launch_costs_by_its_own_nodes_and_not_by_those_of_others) {
  for (const bool known : {false, true})
    EXPECT_LT(cost_of_launches(4000, known), 20 * cost_of_launches(40, known)) << known;
}

std::vector<std::uint32_t> groups_of(NodeMakers& makers, std::uint64_t address) {
  NodeMakers::Maker found[NodeMakers::most_of_one_address];
  const std::size_t count = makers.makers_of(address, found);
  std::vector<std::uint32_t> groups;
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(found[i].bytes, 100 + found[i].group.value);
    EXPECT_TRUE(i == 0 || found[i].order < found[i - 1].order);
    groups.push_back(found[i].group.value);
  }
  return groups;
}
void make(NodeMakers& makers, std::uint64_t address, std::uint32_t group) {
  makers.made(address, 100 + group, GroupId{group});
}

TEST(NodeMakers, the_latest_makers_of_an_address_are_known_the_latest_first) {
  const auto makers = std::make_unique<NodeMakers>();
  EXPECT_TRUE(groups_of(*makers, 64).empty());
  for (std::uint32_t group = 1; group <= 3; ++group) make(*makers, 64, group);
  make(*makers, 65, 9);
  EXPECT_EQ(groups_of(*makers, 64), (std::vector<std::uint32_t>{3, 2, 1}));
  EXPECT_EQ(groups_of(*makers, 65), (std::vector<std::uint32_t>{9}));
  for (std::uint32_t group = 10; group < 10'000; ++group) make(*makers, 64, group);
  const auto latest = groups_of(*makers, 64);
  ASSERT_EQ(latest.size(), NodeMakers::most_of_one_address);
  for (std::uint32_t i = 0; i < latest.size(); ++i) EXPECT_EQ(latest[i], 9'999 - i);
  EXPECT_EQ(groups_of(*makers, 65), (std::vector<std::uint32_t>{9}));  // this node was kept
}

TEST(NodeMakers, the_oldest_maker_is_forgotten_when_the_table_is_full) {
  const auto makers = std::make_unique<NodeMakers>();
  make(*makers, 64, 1);
  for (std::uint32_t i = 0; i < 10'000; ++i) make(*makers, 1000 + i, i + 1);
  EXPECT_TRUE(groups_of(*makers, 64).empty());
  EXPECT_TRUE(groups_of(*makers, 1000).empty());
  for (std::uint32_t i = 6000; i < 10'000; ++i)
    ASSERT_EQ(groups_of(*makers, 1000 + i), (std::vector<std::uint32_t>{i + 1}));
}

}  // namespace
}  // namespace cuwarden::hooks
