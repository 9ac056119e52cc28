#include "runtime_hooks/pool/page_pairing.hpp"

#include <numeric>

namespace cuwarden::pool {

// Takes the fullest pages first. Each page goes to the first of the latest 256 targets that has
// room for it. Pages that come late take little, and fit into many targets.
MeshPlan plan_mesh(std::span<const PageSteps> pages) {
  constexpr std::uint32_t most_compared = 256;
  std::vector<std::uint32_t> taken(pages.size()), order(pages.size());
  for (std::size_t i = 0; i < pages.size(); ++i) taken[i] = pages[i].taken();
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return taken[a] > taken[b]; });
  MeshPlan plan;
  plan.target_of.resize(pages.size());
  std::vector<PageSteps> targets;
  for (const std::uint32_t page : order) {
    const auto made = static_cast<std::uint32_t>(targets.size());
    std::uint32_t target = made - std::min(made, most_compared);
    while (target < made && targets[target].meets(pages[page])) ++target;
    if (target == made) targets.emplace_back();
    targets[target].take(pages[page]);
    plan.target_of[page] = target;
  }
  plan.targets = static_cast<std::uint32_t>(targets.size());
  return plan;
}

}  // namespace cuwarden::pool
