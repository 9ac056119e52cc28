#include "runtime_hooks/families/memory_nodes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

namespace cuwarden::families {
namespace {

constexpr std::uint64_t handle(std::uint64_t i) { return 0x7f00'0000'0000 + i * 0x340; }

std::vector<std::uint64_t> addresses(ExecEffects& effects, std::uint64_t exec, bool allocates) {
  std::vector<std::uint64_t> found;
  effects.for_each(exec, allocates, [&](const Effect& e) { found.push_back(e.address); });
  std::sort(found.begin(), found.end());
  return found;
}

// The shortest of many rounds: what the work takes where nothing interrupts it.
template <class Work>
double best_us_per_call(Work work) {
  double best = 1e9;
  for (int round = 0; round < 30; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 100; ++i) work();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / 100);
  }
  return best;
}

TEST(ExecEffects, GivesEachGraphItsOwnAllOfThem) {
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

TEST(ExecEffects, ForgetsOneGraphAndUsesItsRoomAgain) {
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

TEST(ExecEffects, ALaunchCostsByItsOwnNodesNotByThoseOfOthers) {
  const auto effects = std::make_unique<ExecEffects>();
  for (std::uint64_t i = 0; i < 4000; ++i)
    ASSERT_TRUE(effects->add({handle(i), i + 1, 8, GroupId{1}, true}));
  std::uint64_t next = 100'000, found = 0;
  // Looking through 4096 rows takes tens of microseconds.
  EXPECT_LT(best_us_per_call(
                [&] { effects->for_each(handle(next++), true, [&](const Effect&) { ++found; }); }),
            2.0);
  EXPECT_LT(best_us_per_call([&] {
              effects->for_each(handle(next++ % 4000), true, [&](const Effect&) { ++found; });
            }),
            2.0);
  EXPECT_GE(found, 3000u);
}

TEST(NodeMakers, KnowsTheLatestMakerOfAnAddressAndForgetsTheOldest) {
  const auto makers = std::make_unique<NodeMakers>();
  makers->made(64, GroupId{1});
  makers->made(64, GroupId{2});
  EXPECT_EQ(makers->maker_of(64).value, 2u);
  EXPECT_EQ(makers->maker_of(65).value, 0u);
  for (std::uint32_t i = 0; i < 10'000; ++i) makers->made(1000 + i, GroupId{i + 1});
  EXPECT_EQ(makers->maker_of(64).value, 0u);
  EXPECT_EQ(makers->maker_of(1000).value, 0u);
  for (std::uint32_t i = 6000; i < 10'000; ++i) ASSERT_EQ(makers->maker_of(1000 + i).value, i + 1);
}

}  // namespace
}  // namespace cuwarden::families
