#include "runtime_hooks/pool/meshing/page_pairing.hpp"

#include <numeric>

namespace cuwarden::pool {

namespace {

// Most targets, of the latest, that a page is compared with. A comparison takes about 2 ns.
constexpr std::uint32_t most_compared = 4096;
// The comparison by all steps begins with the latest 256 targets, the oldest of these first: it is
// likely to be the fullest. The other targets follow, the latest first.
constexpr std::uint32_t fullest_of = 256;

// The targets of a plan in its making.
struct Targets {
  std::vector<PageSteps> steps;
  // For each target, the coarse bits and the samples of its steps, and the number of its steps that
  // are taken.
  std::vector<std::uint64_t> coarse;
  std::vector<PageSamples> samples;
  std::vector<std::uint32_t> taken;

  // Returns the fullest of the latest targets that has room for the page by coarse bits alone;
  // otherwise one of them that has room by its steps; otherwise the number of targets.
  std::uint32_t find(const PageSteps& page, std::uint64_t bits,
                     const PageSamples& page_samples) const {
    const auto made = static_cast<std::uint32_t>(steps.size());
    std::uint32_t best = made, most = 0;
    for (std::uint32_t at = made - std::min(made, most_compared); at < made; ++at)
      if ((coarse[at] & bits) == 0 && taken[at] >= most) most = taken[best = at];
    if (best != made) return best;
    const auto has_room = [&](std::uint32_t at) {
      return !samples[at].meet(page_samples) && !steps[at].meets(page);
    };
    const std::uint32_t first = made - std::min(made, fullest_of),
                        last = made - std::min(made, most_compared);
    for (std::uint32_t at = first; at < made; ++at)
      if (has_room(at)) return at;
    for (std::uint32_t at = first; at-- > last;)
      if (has_room(at)) return at;
    return made;
  }
  // Adds a target without any taken step.
  void add() {
    steps.emplace_back();
    coarse.push_back(0);
    samples.emplace_back();
    taken.push_back(0);
  }
};

}  // namespace

// Takes the fullest pages first, and fills the fullest targets first. Pages that come late take
// little, and fit into many targets.
MeshPlan plan_mesh(std::span<const PageSteps> pages) {
  std::vector<std::uint32_t> taken(pages.size()), order(pages.size());
  for (std::size_t i = 0; i < pages.size(); ++i) taken[i] = pages[i].taken();
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return taken[a] > taken[b]; });
  MeshPlan plan;
  plan.target_of.resize(pages.size());
  Targets targets;
  for (const std::uint32_t page : order) {
    const std::uint64_t bits = pages[page].coarse();
    const PageSamples samples = pages[page].samples();
    const std::uint32_t target = targets.find(pages[page], bits, samples);
    if (target == targets.steps.size()) targets.add();
    targets.steps[target].take(pages[page]);
    targets.coarse[target] |= bits;
    targets.samples[target].take(samples);
    targets.taken[target] += taken[page];
    plan.target_of[page] = target;
  }
  plan.targets = static_cast<std::uint32_t>(targets.steps.size());
  return plan;
}

}  // namespace cuwarden::pool
