// The memory that a plan of meshing saves, for pages in which blocks were freed at random.
#include "runtime_hooks/pool/meshing/page_pairing.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cuwarden::pool {
namespace {

constexpr std::size_t pages = 4096;

// Pages of blocks of one size, of which a share lives.
struct Filled {
  std::uint32_t kib;         // KiB of each block
  unsigned live_percent;     // share of the blocks that live, by chance
  double recovered_percent;  // least share of the freed bytes that a plan must save
};

// The shares are those of an exhaustive first fit on as many real pages (4,096), less 2 points.
constexpr Filled table[] = {
    {4, 5, 84},    {4, 10, 54},   {16, 5, 96},    {16, 10, 87},   {16, 25, 18},   {64, 5, 97},
    {64, 10, 97},  {64, 25, 86},  {64, 50, 8},    {256, 5, 98},   {256, 10, 98},  {256, 25, 97},
    {256, 50, 93}, {1024, 5, 98}, {1024, 10, 98}, {1024, 25, 98}, {1024, 50, 98},
};

TEST(PagePairing, a_plan_saves_what_an_exhaustive_first_fit_saves) {
  for (const Filled& filled : table) {
    std::mt19937_64 random(7);
    const std::uint32_t blocks = 2048 / filled.kib, steps = PageSteps::count / blocks;
    std::vector<PageSteps> in_use;
    std::uint64_t live = 0;
    for (std::size_t i = 0; i < pages; ++i) {
      PageSteps taken;
      for (std::uint32_t block = 0; block < blocks; ++block) {
        if (random() % 100 >= filled.live_percent) continue;
        taken.take(block * steps, (block + 1) * steps);
        ++live;
      }
      if (taken.taken() != 0) in_use.push_back(taken);
    }
    const MeshPlan plan = plan_mesh(in_use);
    const double freed = static_cast<double>(pages) - static_cast<double>(live) / blocks;
    const double recovered = 100 * static_cast<double>(pages - plan.targets) / freed;
    EXPECT_GE(recovered, filled.recovered_percent)
        << filled.kib << " KiB, " << filled.live_percent << " % live";

    // Pages of one target have no step in common.
    std::vector<PageSteps> targets(plan.targets);
    for (std::size_t i = 0; i < in_use.size(); ++i) {
      ASSERT_FALSE(targets.at(plan.target_of[i]).meets(in_use[i]));
      targets[plan.target_of[i]].take(in_use[i]);
    }
  }
}

}  // namespace
}  // namespace cuwarden::pool
