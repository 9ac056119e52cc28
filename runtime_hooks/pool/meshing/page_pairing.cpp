#include "runtime_hooks/pool/meshing/page_pairing.hpp"

#include <numeric>

namespace cuwarden::pool {

namespace {

// Most targets, of the latest, that an item is compared with; the oldest of these come first, which
// are likely to be the fullest. A comparison of a page takes about 2 ns.
constexpr std::uint32_t most_compared = 4096;

}  // namespace

class MeshPlan::Item {
 public:
  explicit Item(std::span<const PageSteps> pages) : pages_(pages) {
    for (std::size_t page = 0; page < pages.size(); ++page) {
      coarse_[page] = pages[page].coarse();
      samples_[page] = pages[page].samples();
      taken_ += pages[page].taken();
    }
  }
  const PageSteps& steps(std::size_t page) const { return pages_[page]; }
  std::uint64_t coarse(std::size_t page) const { return coarse_[page]; }
  const PageSamples& samples(std::size_t page) const { return samples_[page]; }
  std::uint32_t taken() const { return taken_; }

 private:
  std::span<const PageSteps> pages_;
  std::array<std::uint64_t, most_span> coarse_{};
  std::array<PageSamples, most_span> samples_{};
  std::uint32_t taken_ = 0;
};

struct MeshPlan::Earlier {
  std::uint32_t target = 0, taken = 0;
  std::array<PageSteps, most_span> steps{};
};

std::uint32_t MeshPlan::find(const Item& item) const {
  const std::uint32_t made = targets(), first = made - std::min(made, most_compared);
  std::uint32_t best = made, most = 0;
  for (std::uint32_t at = first; at < made; ++at)
    if (taken_[at] >= most && has_coarse_room(at, item)) most = taken_[best = at];
  for (std::uint32_t at = first; best == made && at < made; ++at)
    if (has_room(at, item)) best = at;
  return best;
}

bool MeshPlan::has_coarse_room(std::uint32_t target, const Item& item) const {
  std::uint64_t met = 0;
  for (std::size_t page = 0; page < span_; ++page)
    met |= coarse_[target * span_ + page] & item.coarse(page);
  return met == 0;
}

bool MeshPlan::has_room(std::uint32_t target, const Item& item) const {
  for (std::size_t page = 0; page < span_; ++page) {
    const std::size_t at = target * span_ + page;
    if (samples_[at].meet(item.samples(page)) || steps_[at].meets(item.steps(page))) return false;
  }
  return true;
}

void MeshPlan::take(std::uint32_t target, const Item& item) {
  if (target == targets()) {
    taken_.push_back(0);
    steps_.resize(steps_.size() + span_);
    coarse_.resize(steps_.size());
    samples_.resize(steps_.size());
  }
  taken_[target] += item.taken();
  for (std::size_t page = 0; page < span_; ++page) {
    const std::size_t at = target * span_ + page;
    steps_[at].take(item.steps(page));
    coarse_[at] |= item.coarse(page);
    samples_[at].take(item.samples(page));
  }
}

void MeshPlan::restore(const Earlier& earlier) {
  if (earlier.taken == 0) {
    taken_.pop_back();
    steps_.resize(steps_.size() - span_);
    coarse_.resize(steps_.size());
    samples_.resize(steps_.size());
    return;
  }
  taken_[earlier.target] = earlier.taken;
  for (std::size_t page = 0; page < span_; ++page) {
    const std::size_t at = earlier.target * span_ + page;
    steps_[at] = earlier.steps[page];
    coarse_[at] = steps_[at].coarse();
    samples_[at] = steps_[at].samples();
  }
}

// Takes the fullest items first, and fills the fullest targets first. Items that come late take
// little, and fit into many targets.
std::vector<std::uint32_t> MeshPlan::assign_all(std::span<const PageSteps> pages) {
  std::vector<std::uint32_t> target_of(pages.size() / span_), taken(target_of.size()),
      order(target_of.size());
  for (std::size_t i = 0; i < pages.size(); ++i) taken[i / span_] += pages[i].taken();
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return taken[a] > taken[b]; });
  for (const std::uint32_t at : order) {
    const Item item(pages.subspan(at * span_, span_));
    target_of[at] = find(item);
    take(target_of[at], item);
  }
  return target_of;
}

std::vector<std::uint32_t> MeshPlan::assign_few(std::span<const PageSteps> pages,
                                                std::uint32_t most_new) {
  const std::uint32_t made = targets();
  std::vector<std::uint32_t> target_of;
  std::vector<Earlier> before;
  for (std::size_t first = 0; first < pages.size(); first += span_) {
    const Item item(pages.subspan(first, span_));
    const std::uint32_t target = find(item);
    if (target == made + most_new) {
      for (; !before.empty(); before.pop_back()) restore(before.back());
      return {};
    }
    Earlier& earlier = before.emplace_back();
    earlier.target = target;
    if (target != targets()) {
      earlier.taken = taken_[target];
      std::copy_n(steps_.begin() + static_cast<std::ptrdiff_t>(target * span_), span_,
                  earlier.steps.begin());
    }
    take(target, item);
    target_of.push_back(target);
  }
  return target_of;
}

}  // namespace cuwarden::pool
