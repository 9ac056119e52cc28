// Which runs' pages are to share memory.
#include "runtime_hooks/pool/arena_meshing.hpp"

namespace cuwarden::pool {
namespace {

// What is taken of a run: with more there is little to be gained.
constexpr std::uint64_t most_taken_share = 2;
constexpr std::size_t most_own = 256;
constexpr std::uint32_t most_taken_of_own = PageSteps::count / 8 * 7;
// Whose pages find no place among those: others are no better.
constexpr int most_in_vain = 1000;
// The largest runs that growth makes want an eighth of it.
constexpr std::uint64_t enough_to_begin = std::uint64_t{64} << 20;

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

// False: too much of it is taken. Items get what each of its items takes.
bool Arena::Meshing::add_candidate(RunIndex index, std::vector<PageSteps>& items) {
  const Run& run = arena_.run(index);
  Candidate candidate{.run = index, .first_move = static_cast<std::uint32_t>(moves_.size())};
  const auto first_item = static_cast<std::uint32_t>(items.size());
  std::uint64_t taken = 0;
  arena_.each_page(run, [&](std::uint64_t page) {
    if (arena_.pages_[page].blocks == 0) return;
    if (!run.is_shared || items.size() == first_item) items.emplace_back();
    const PageSteps steps = steps_of(page);
    items.back().take(steps);
    moves_.push_back({.page = page, .item = static_cast<std::uint32_t>(items.size() - 1)});
    taken += steps.taken() * Packing::step_bytes;
  });
  if (taken * most_taken_share > run.bytes()) {
    moves_.resize(candidate.first_move);
    items.resize(first_item);
    return false;
  }
  candidate.moves = static_cast<std::uint32_t>(moves_.size()) - candidate.first_move;
  candidate.items = static_cast<std::uint32_t>(items.size()) - first_item;
  candidates_.push_back(candidate);
  return true;
}

void Arena::Meshing::find_moves() {
  std::vector<PageSteps> pages;
  for (RunIndex index = 1; index <= arena_.runs_.size(); ++index)
    if (arena_.run(index).pages_in_use != 0) add_candidate(index, pages);
  const MeshPlan plan = plan_mesh(pages);
  for (Move& move : moves_) move.target = plan.target_of[move.item];
  targets_.resize(plan.targets);
  new_targets_ = plan.targets;
}

std::vector<Arena::Meshing::Own> Arena::Meshing::find_own() const {
  std::vector<Own> all;
  for (RunIndex index = 1; index <= arena_.runs_.size() && all.size() < most_own; ++index) {
    const Run& run = arena_.run(index);
    if (run.pages_in_use == 0 || run.bytes() != page_bytes) continue;
    all.emplace_back().run = index;
    arena_.each_page(run, [&](std::uint64_t page) { all.back().steps.take(steps_of(page)); });
    // Hardly anything goes there.
    if (all.back().steps.taken() > most_taken_of_own) all.pop_back();
  }
  return all;
}

// One for each of the candidate's items, which moves_ gets. False: there are too few.
bool Arena::Meshing::find_own_targets(const Candidate& candidate,
                                      const std::vector<PageSteps>& items, std::vector<Own>& own) {
  std::vector<std::pair<std::uint32_t, PageSteps>> before;  // each item's target, without it
  for (const PageSteps& item : items) {
    const auto fits = std::ranges::find_if(own, [&](const Own& one) {
      return !one.has_moved && one.run != candidate.run && !one.steps.meets(item);
    });
    if (fits == own.end()) {
      while (!before.empty()) {
        own[before.back().first].steps = before.back().second;
        before.pop_back();
      }
      return false;
    }
    before.emplace_back(static_cast<std::uint32_t>(fits - own.begin()), fits->steps);
    fits->steps.take(item);
  }
  for (std::uint32_t i = 0; i < candidate.moves; ++i) {
    Move& move = moves_[candidate.first_move + i];
    move.target = before[move.item].first;
    own[move.target].is_target = true;
  }
  for (Own& one : own) one.has_moved = one.has_moved || one.run == candidate.run;
  return true;
}

// As much as new memory is wanted for at first.
void Arena::Meshing::find_moves_into_own() {
  std::vector<Own> own = find_own();
  std::uint64_t gain = 0;
  int in_vain = 0;
  for (RunIndex index = 1;
       index <= arena_.runs_.size() && gain < enough_to_begin && in_vain < most_in_vain; ++index) {
    const bool is_target =
        std::ranges::any_of(own, [&](const Own& one) { return one.run == index && one.is_target; });
    std::vector<PageSteps> items;
    if (arena_.run(index).pages_in_use == 0 || is_target || !add_candidate(index, items)) continue;
    if (find_own_targets(candidates_.back(), items, own)) {
      gain += arena_.run(index).bytes();
      continue;
    }
    ++in_vain;
    moves_.resize(candidates_.back().first_move);
    candidates_.pop_back();
  }
  for (const Own& one : own)
    targets_.push_back({.at = arena_.address_of(arena_.run(one.run).first), .run = one.run});
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
