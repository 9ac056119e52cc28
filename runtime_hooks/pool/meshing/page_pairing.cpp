#include "runtime_hooks/pool/meshing/page_pairing.hpp"

#include <numeric>

namespace cuwarden::pool {

namespace {

// Most targets, of the latest, that an item is compared with. A comparison of a page takes about
// 2 ns.
constexpr std::uint32_t most_compared = 4096;
// The comparison by all steps begins with the latest 256 targets, the oldest of these first: it is
// likely to be the fullest. The other targets follow, the latest first.
constexpr std::uint32_t fullest_of = 256;

// One item: the steps of its pages, and coarse bits and samples of each page's steps.
class Item {
 public:
  explicit Item(std::span<const PageSteps> pages) : pages_(pages) {
    for (std::size_t page = 0; page < pages.size(); ++page) {
      coarse_[page] = pages[page].coarse();
      samples_[page] = pages[page].samples();
    }
  }
  const PageSteps& steps(std::size_t page) const { return pages_[page]; }
  std::uint64_t coarse(std::size_t page) const { return coarse_[page]; }
  const PageSamples& samples(std::size_t page) const { return samples_[page]; }

 private:
  std::span<const PageSteps> pages_;
  std::array<std::uint64_t, most_span> coarse_{};
  std::array<PageSamples, most_span> samples_{};
};

// The targets of a plan in its making.
class Targets {
 public:
  explicit Targets(std::uint32_t span) : span_(span) {}

  // Number of targets.
  std::uint32_t count() const { return static_cast<std::uint32_t>(taken_.size()); }
  // Returns the fullest of the latest targets that has room for the item by coarse bits alone;
  // otherwise one of them that has room by its steps; otherwise the number of targets.
  std::uint32_t find(const Item& item) const {
    const std::uint32_t made = count();
    std::uint32_t best = made, most = 0;
    for (std::uint32_t at = made - std::min(made, most_compared); at < made; ++at)
      if (taken_[at] >= most && has_coarse_room(at, item)) most = taken_[best = at];
    if (best != made) return best;
    const std::uint32_t first = made - std::min(made, fullest_of),
                        last = made - std::min(made, most_compared);
    for (std::uint32_t at = first; at < made; ++at)
      if (has_room(at, item)) return at;
    for (std::uint32_t at = first; at-- > last;)
      if (has_room(at, item)) return at;
    return made;
  }
  // Assigns an item, which takes so many steps, to the target; makes the target if there is none of
  // this number.
  void take(std::uint32_t target, const Item& item, std::uint32_t taken) {
    if (target == count()) {
      taken_.push_back(0);
      steps_.resize(steps_.size() + span_);
      coarse_.resize(steps_.size());
      samples_.resize(steps_.size());
    }
    taken_[target] += taken;
    for (std::size_t page = 0; page < span_; ++page) {
      const std::size_t at = target * span_ + page;
      steps_[at].take(item.steps(page));
      coarse_[at] |= item.coarse(page);
      samples_[at].take(item.samples(page));
    }
  }

 private:
  bool has_coarse_room(std::uint32_t target, const Item& item) const {
    std::uint64_t met = 0;
    for (std::size_t page = 0; page < span_; ++page)
      met |= coarse_[target * span_ + page] & item.coarse(page);
    return met == 0;
  }
  bool has_room(std::uint32_t target, const Item& item) const {
    for (std::size_t page = 0; page < span_; ++page) {
      const std::size_t at = target * span_ + page;
      if (samples_[at].meet(item.samples(page)) || steps_[at].meets(item.steps(page))) return false;
    }
    return true;
  }

  const std::size_t span_;
  // For each page of each target: its steps, and coarse bits and samples of them.
  std::vector<PageSteps> steps_;
  std::vector<std::uint64_t> coarse_;
  std::vector<PageSamples> samples_;
  // For each target, the number of its steps that are taken.
  std::vector<std::uint32_t> taken_;
};

}  // namespace

// Takes the fullest items first, and fills the fullest targets first. Items that come late take
// little, and fit into many targets.
MeshPlan plan_mesh(std::span<const PageSteps> pages, std::uint32_t span) {
  std::vector<std::uint32_t> taken(pages.size() / span), order(taken.size());
  for (std::size_t i = 0; i < pages.size(); ++i) taken[i / span] += pages[i].taken();
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return taken[a] > taken[b]; });
  MeshPlan plan;
  plan.target_of.resize(taken.size());
  Targets targets(span);
  for (const std::uint32_t at : order) {
    const Item item(pages.subspan(std::size_t{at} * span, span));
    plan.target_of[at] = targets.find(item);
    targets.take(plan.target_of[at], item, taken[at]);
  }
  plan.targets = targets.count();
  return plan;
}

}  // namespace cuwarden::pool
