// The memory that a plan of meshing saves, for pages in which blocks were freed at random.
#include "runtime_hooks/pool/meshing/page_pairing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "tests/repetitions.hpp"

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

// Returns the rows that are tested. Under a sanitizer, which makes each several times slower, they
// are those of blocks of 64 KiB.
std::span<const Filled> tested_rows() {
  return test::is_sanitized ? std::span(table).subspan(5, 4) : std::span(table);
}

// Returns the steps of pages in which blocks live by chance, and adds their number to `live`.
std::vector<PageSteps> filled_pages(const Filled& filled, std::uint64_t& live) {
  std::mt19937_64 random(7);
  const std::uint32_t blocks = 2048 / filled.kib, steps = PageSteps::count / blocks;
  std::vector<PageSteps> made(pages);
  for (PageSteps& page : made)
    for (std::uint32_t block = 0; block < blocks; ++block) {
      if (random() % 100 >= filled.live_percent) continue;
      page.take(block * steps, (block + 1) * steps);
      ++live;
    }
  return made;
}

// Returns the percentage of the freed bytes that is recovered if `left` pages of memory are left.
double recovered_of(const Filled& filled, std::uint64_t live, std::size_t left) {
  const double live_pages = static_cast<double>(live * filled.kib) / 2048;
  return 100 * static_cast<double>(pages - left) / (static_cast<double>(pages) - live_pages);
}

TEST(PagePairing, a_plan_saves_what_an_exhaustive_first_fit_saves) {
  for (const Filled& filled : tested_rows()) {
    std::uint64_t live = 0;
    std::vector<PageSteps> in_use = filled_pages(filled, live);
    std::erase_if(in_use, [](const PageSteps& page) { return page.taken() == 0; });
    MeshPlan plan;
    const std::vector<std::uint32_t> target_of = plan.assign_all(in_use);
    EXPECT_GE(recovered_of(filled, live, plan.targets()), filled.recovered_percent)
        << filled.kib << " KiB, " << filled.live_percent << " % live";

    // Pages of one target have no step in common.
    std::vector<PageSteps> targets(plan.targets());
    for (std::size_t i = 0; i < in_use.size(); ++i) {
      ASSERT_FALSE(targets.at(target_of[i]).meets(in_use[i]));
      targets[target_of[i]].take(in_use[i]);
    }
  }
}

TEST(PagePairing, pages_that_were_moved_with_their_neighbours_are_moved_apart_later) {
  for (const Filled& filled : tested_rows()) {
    std::uint64_t live = 0;
    const std::vector<PageSteps> all = filled_pages(filled, live);
    MeshPlan runs(most_span);
    const std::vector<std::uint32_t> run_of = runs.assign_all(all);
    // The pages of addresses that each run's memory serves after the first plan, and pages whose
    // run shares memory with no other.
    std::vector<std::vector<PageSteps>> shared(runs.targets());
    std::vector<PageSteps> alone;
    for (std::size_t page = 0; page < all.size(); ++page)
      if (all[page].taken() != 0) shared[run_of[page / most_span]].push_back(all[page]);
    for (std::size_t run = 0; run < shared.size(); ++run)
      if (std::ranges::count(run_of, run) == 1)
        for (const PageSteps& page : std::exchange(shared[run], {})) alone.push_back(page);
    MeshPlan plan;
    plan.assign_all(alone);
    std::size_t stay = 0;  // pages of memory of runs that would need more than they give back
    for (const std::vector<PageSteps>& run : shared)
      if (!run.empty() && plan.assign_few(run, most_span).empty()) stay += most_span;
    EXPECT_GE(recovered_of(filled, live, plan.targets() + stay), filled.recovered_percent)
        << filled.kib << " KiB, " << filled.live_percent << " % live";
  }
}

TEST(PagePairing, a_plan_that_would_need_too_many_targets_changes_nothing) {
  PageSteps low, high, all;
  low.take(0, 100);
  high.take(100, 200);
  all.take(0, 200);
  MeshPlan plan;
  EXPECT_EQ(plan.assign_few(std::array{low}, 1), std::vector<std::uint32_t>{0});
  EXPECT_TRUE(plan.assign_few(std::array{high, all, all}, 1).empty());
  EXPECT_EQ(plan.targets(), 1u);
  EXPECT_EQ(plan.assign_few(std::array{high}, 0), std::vector<std::uint32_t>{0});
  EXPECT_TRUE(plan.assign_few(std::array{low}, 0).empty());
  EXPECT_EQ(plan.assign_few(std::array{all, low}, 2), (std::vector<std::uint32_t>{1, 2}));
}

}  // namespace
}  // namespace cuwarden::pool
