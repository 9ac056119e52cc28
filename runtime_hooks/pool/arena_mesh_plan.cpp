// Which runs' pages are to share memory.
#include "runtime_hooks/pool/arena_meshing.hpp"

namespace cuwarden::pool {
namespace {

// What is taken of a run: with more there is little to be gained.
constexpr std::uint64_t most_taken_share = 2;

}  // namespace

PageSteps Arena::Meshing::steps_of(std::uint64_t page) const {
  PageSteps steps;
  const std::uint64_t start = arena_.address_of(page);
  arena_.packing_.each_taken(start, page_bytes, [&](std::uint64_t first, std::uint64_t end) {
    steps.take(static_cast<std::uint32_t>((first - start) / Packing::step_bytes),
               static_cast<std::uint32_t>((end - start) / Packing::step_bytes));
  });
  return steps;
}

void Arena::Meshing::find_moves() {
  std::vector<PageSteps> pages;
  for (RunIndex index = 1; index <= arena_.runs_.size(); ++index) {
    const Run& run = arena_.run(index);
    if (run.count == 0 || run.pages_in_use == 0) continue;
    Candidate candidate{.run = index, .first_move = static_cast<std::uint32_t>(moves_.size())};
    const auto first_item = static_cast<std::uint32_t>(pages.size());
    std::uint64_t taken = 0;
    arena_.each_page(run, [&](std::uint64_t page) {
      if (arena_.pages_[page].blocks == 0) return;
      if (!run.is_shared || pages.size() == first_item) pages.emplace_back();
      const PageSteps steps = steps_of(page);
      pages.back().take(steps);
      moves_.push_back({.page = page, .item = static_cast<std::uint32_t>(pages.size() - 1)});
      taken += steps.taken() * Packing::step_bytes;
    });
    if (taken * most_taken_share > run.bytes()) {
      moves_.resize(candidate.first_move);
      pages.resize(first_item);
      continue;
    }
    candidate.moves = static_cast<std::uint32_t>(moves_.size()) - candidate.first_move;
    candidate.items = static_cast<std::uint32_t>(pages.size()) - first_item;
    candidates_.push_back(candidate);
  }
  const MeshPlan plan = plan_mesh(pages);
  for (Move& move : moves_) move.target = plan.target_of[move.item];
  targets_.resize(plan.targets);
}

// A run whose pages would all have their memory alone, and be as many as before. The smallest come
// first: what they need is there most likely.
void Arena::Meshing::drop_useless() {
  std::vector<std::uint32_t> items(targets_.size());
  const auto count_items = [&](const Candidate& candidate) {
    for (std::uint32_t i = 0, last = UINT32_MAX; i < candidate.moves; ++i) {
      const Move& move = moves_[candidate.first_move + i];
      if (move.item != last && items[move.target]++ == 0) ++used_targets_;
      last = move.item;
    }
  };
  for (const Candidate& candidate : candidates_) count_items(candidate);
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    if (candidate.items * page_bytes < arena_.run(candidate.run).bytes()) return false;
    for (std::uint32_t i = 0; i < candidate.moves; ++i)
      if (items[moves_[candidate.first_move + i].target] != 1) return false;
    return true;
  });
  std::ranges::stable_sort(candidates_, {}, [&](const Candidate& candidate) {
    return arena_.run(candidate.run).bytes();
  });
  std::ranges::fill(items, 0);
  used_targets_ = 0;
  for (const Candidate& candidate : candidates_) count_items(candidate);
}

}  // namespace cuwarden::pool
