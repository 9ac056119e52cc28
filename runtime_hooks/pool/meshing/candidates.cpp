// Chooses the runs whose pages are to share memory, and keeps the moves that were not made.
#include <algorithm>
#include <iterator>
#include <new>
#include <tuple>

#include "runtime_hooks/pool/meshing/arena_meshing.hpp"

namespace cuwarden::pool {
namespace {

// A run without an empty page is not moved if more than 15 of 16 parts of it are taken: little
// would be saved.
constexpr std::uint64_t fullness_parts = 16;
// The most single-page runs that a plan considers as targets.
constexpr std::size_t most_own = 256;
// The most steps of a single-page run that may be taken if it is to be a target: seven eighths.
constexpr std::uint32_t most_taken_of_own = PageSteps::count / 8 * 7;
// The search ends after so many candidates for which there is no target: later ones are no better.
constexpr int most_in_vain = 1000;
// Left-over moves are given up once blocks take a 64th less than when the moves were planned. A
// plan of all pages then saves more.
constexpr std::uint64_t much_freed = 64;
// On a full device, moves into existing memory end once they save so many bytes: from then on there
// is room for moves into new memory. The largest runs that growth makes need a quarter of it.
constexpr std::uint64_t enough_to_begin = std::uint64_t{64} << 20;

}  // namespace

Arena::Meshing::Meshing(Arena& arena, const driver::RealDriver& real, Plan plan, bool verifies)
    : arena_(arena),
      real_(real),
      verifies_(verifies),
      has_kernel_(arena.copy_kernel_.is_here(real)) {
  planned_beside_bytes_ = arena.packing_.taken_bytes();
  if (plan == Plan::neighbours) span_ = most_span;
  if (plan == Plan::neighbours || plan == Plan::into_new_memory) find_moves();
  if (plan == Plan::into_own_memory) find_moves_into_own();
  if (plan == Plan::left_over) find_left_over();
  if (plan != Plan::into_own_memory) drop_useless();
  reserve();
}

// Marks the steps of the page that blocks take. Returns their number.
std::uint32_t Arena::Meshing::take_steps(std::uint64_t page, PageSteps& steps) const {
  const std::uint64_t start = arena_.address_of(page);
  std::uint32_t taken = 0;
  arena_.packing_.each_taken(start, page_bytes, [&](std::uint64_t first, std::uint64_t end) {
    steps.take(static_cast<std::uint32_t>((first - start) / Packing::step_bytes),
               static_cast<std::uint32_t>((end - start) / Packing::step_bytes));
    taken += static_cast<std::uint32_t>((end - first) / Packing::step_bytes);
  });
  ++arena_.counts_.planned_pages;
  return taken;
}

// True if one of the `span_` pages from `page` on has a block.
bool Arena::Meshing::has_blocks(std::uint64_t page) const noexcept {
  const auto pages = std::span(arena_.pages_).subspan(page, span_);
  return std::ranges::any_of(pages, [](const Page& one) { return one.blocks != 0; });
}

// Adds the run as a candidate, with a move for each `span_` pages that hold a block. Appends to
// `pages` the steps that each item takes, `span_` pages for an item. Returns false, with nothing
// added, if too much of the run is taken. The moves of an item lie next to each other. `splits`:
// true if pages that share memory are items of their own. `first_item`: number of the first item.
bool Arena::Meshing::add_candidate(RunIndex index, std::vector<PageSteps>& pages, bool splits,
                                   std::size_t first_item) {
  const Run& run = arena_.run(index);
  Candidate candidate{.run = index, .first_move = static_cast<std::uint32_t>(moves_.size())};
  const std::size_t before = pages.size();
  std::uint64_t taken = 0;
  for (std::uint64_t offset = 0; offset != run.span; offset += span_) {
    std::size_t item = pages.size();
    arena_.each_member(run, [&](std::uint64_t first) {
      const std::uint64_t page = first + offset;
      if (!has_blocks(page)) return;
      if (splits) item = pages.size();
      pages.resize(item + span_);
      moves_.push_back(
          {.page = page, .item = static_cast<std::uint32_t>(first_item + (item - before) / span_)});
      for (std::uint32_t i = 0; i < span_; ++i)
        taken += take_steps(page + i, pages[item + i]) * Packing::step_bytes;
    });
  }
  candidate.moves = static_cast<std::uint32_t>(moves_.size()) - candidate.first_move;
  candidate.items = static_cast<std::uint32_t>((pages.size() - before) / span_);
  if (candidate.moves * span_ == run.count &&
      taken > run.bytes() / fullness_parts * (fullness_parts - 1)) {
    moves_.resize(candidate.first_move);
    pages.resize(before);
    return false;
  }
  candidates_.push_back(candidate);
  return true;
}

// Plans moves of all candidates. If neighbours are to move together, only runs whose number of
// pages of memory is a multiple of the span are candidates. If one of the runs that are to share a
// target has exactly as much memory as a target, its memory becomes the target.
void Arena::Meshing::find_moves() {
  const ArenaCounts& counts = arena_.counts_;
  std::vector<PageSteps> pages;
  pages.reserve((counts.held_bytes - counts.idle_bytes - counts.partly_idle_bytes) / page_bytes);
  std::vector<RunIndex> in_parts;
  for (RunIndex index = 1; index <= arena_.runs_.size(); ++index) {
    const Run& run = arena_.run(index);
    if (!may_move(index) || run.span % span_ != 0) continue;
    if (run.is_shared && run.span > span_)
      in_parts.push_back(index);
    else
      add_candidate(index, pages, false, pages.size() / span_);
  }
  MeshPlan plan(span_);
  const std::vector<std::uint32_t> target_of = plan.assign_all(pages);
  for (Move& move : moves_) move.target = target_of[move.item];
  std::size_t items = target_of.size();
  for (const RunIndex index : in_parts) items += add_in_parts(index, plan, items);
  targets_.resize(plan.targets());
  let_targets_stay();
  count_new_targets();
}

// Adds a run whose members share several pages of memory, page by page. Pages that share memory may
// part, if the run then adds fewer targets to the plan than it gives pages back. Returns the number
// of items.
std::size_t Arena::Meshing::add_in_parts(RunIndex index, MeshPlan& plan, std::size_t first_item) {
  const auto span = static_cast<std::uint32_t>(arena_.run(index).span);
  for (const bool splits : {true, false}) {
    std::vector<PageSteps> pages;
    if (!add_candidate(index, pages, splits, first_item)) return 0;
    Candidate& candidate = candidates_.back();
    // Pages that part must save at least one page of memory.
    const std::vector<std::uint32_t> target_of = plan.assign_few(pages, splits ? span - 1 : span);
    if (target_of.empty()) {
      moves_.resize(candidate.first_move);
      candidates_.pop_back();
      continue;
    }
    for (Move& move : std::span(moves_).subspan(candidate.first_move))
      move.target = target_of[move.item - first_item];
    return candidate.items;
  }
  return 0;
}

void Arena::Meshing::count_new_targets() {
  for (Candidate& candidate : candidates_)
    each_target(candidate, [&](const Target& target) {
      if (!target.is_own) ++candidate.new_targets;
    });
}

// Makes the memory of a run that has as much as a target the target of the pages that are to share
// memory with it. The run is no candidate any more.
void Arena::Meshing::let_targets_stay() {
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    const Run& run = arena_.run(candidate.run);
    Target& target = targets_[moves_[candidate.first_move].target];
    if (run.span != span_ || target.is_own) return false;
    target = {.at = arena_.address_of(run.first), .run = candidate.run, .is_own = true};
    return true;
  });
}

// Returns the single-page runs that have room to become targets.
std::vector<Arena::Meshing::Own> Arena::Meshing::find_own() const {
  std::vector<Own> all;
  for (RunIndex index = 1; index <= arena_.runs_.size() && all.size() < most_own; ++index) {
    const Run& run = arena_.run(index);
    if (!may_move(index) || run.bytes() != page_bytes) continue;
    all.emplace_back().run = index;
    arena_.each_page(run, [&](std::uint64_t page) { take_steps(page, all.back().steps); });
    // A page that is almost full has room for hardly any other page.
    if (all.back().steps.taken() > most_taken_of_own) all.pop_back();
  }
  return all;
}

// Assigns to each of the candidate's items a run of `own` that has room for it, and enters it in
// moves_. Returns false, with nothing changed, if there are too few such runs.
bool Arena::Meshing::find_own_targets(const Candidate& candidate,
                                      const std::vector<PageSteps>& items, std::vector<Own>& own) {
  // Each item's target, as its index in `own`, and the target's steps before the item was added.
  std::vector<std::pair<std::uint32_t, PageSteps>> before;
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

// Plans moves into single-page runs that exist already, up to the amount of memory that moves into
// new memory need to begin.
void Arena::Meshing::find_moves_into_own() {
  std::vector<Own> own = find_own();
  std::uint64_t gain = 0;
  int in_vain = 0;
  for (RunIndex index = 1;
       index <= arena_.runs_.size() && gain < enough_to_begin && in_vain < most_in_vain; ++index) {
    const bool is_target =
        std::ranges::any_of(own, [&](const Own& one) { return one.run == index && one.is_target; });
    std::vector<PageSteps> items;
    if (!may_move(index) || is_target || !add_candidate(index, items, true, 0)) continue;
    if (find_own_targets(candidates_.back(), items, own)) {
      gain += arena_.run(index).bytes();
      continue;
    }
    ++in_vain;
    moves_.resize(candidates_.back().first_move);
    candidates_.pop_back();
  }
  for (const Own& one : own)
    targets_.push_back(
        {.at = arena_.address_of(arena_.run(one.run).first), .run = one.run, .is_own = true});
}

// Frees since the plan was made leave its moves possible. A block that was handed out since then
// may lie at an offset that the plan has given to another page.
void Arena::Meshing::find_left_over() {
  const LeftOver left = std::exchange(arena_.left_over_, {});
  if (arena_.packing_.taken_bytes() < left.taken_bytes - left.taken_bytes / much_freed) return;
  span_ = left.span;
  planned_beside_bytes_ = left.taken_bytes;
  const auto is_as_planned = [&](RunIndex index) {
    return may_move(index) && arena_.run(index).filled_at <= left.made_at;
  };
  // For each target, true if pages cannot move to it any more.
  std::vector<bool> fails(left.targets.size());
  targets_.resize(left.targets.size());
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const RunIndex own = left.targets[i];
    if (own == 0) continue;
    fails[i] = !is_as_planned(own);
    if (!fails[i])
      targets_[i] = {.at = arena_.address_of(arena_.run(own).first), .run = own, .is_own = true};
  }
  moves_.reserve(left.moves.size());
  candidates_.reserve(left.runs.size());
  for (const LeftOver::OfRun& one : left.runs)
    if (is_as_planned(one.run)) add_left_over(left, one, fails);
  count_new_targets();
}

// Adds the run as a candidate, with the moves of those pages that still hold a block. Adds nothing
// if one of their targets fails.
void Arena::Meshing::add_left_over(const LeftOver& left, const LeftOver::OfRun& one,
                                   const std::vector<bool>& fails) {
  Candidate candidate{.run = one.run, .first_move = static_cast<std::uint32_t>(moves_.size())};
  for (const Move& move : std::span(left.moves).subspan(one.first_move, one.moves)) {
    if (arena_.pages_[move.page].run != one.run || !has_blocks(move.page)) continue;
    if (fails[move.target]) return moves_.resize(candidate.first_move);
    if (candidate.items == 0 || moves_.back().item != move.item) ++candidate.items;
    moves_.push_back(move);
  }
  candidate.moves = static_cast<std::uint32_t>(moves_.size()) - candidate.first_move;
  candidates_.push_back(candidate);
}

void Arena::Meshing::keep_rest() noexcept try {
  arena_.left_over_ = {};
  if (has_failed_) return;
  LeftOver left{.made_at = arena_.changes_, .taken_bytes = planned_beside_bytes_, .span = span_};
  std::size_t runs = 0, moves = 0;
  for (const Candidate& candidate : candidates_) {
    runs += candidate.is_complete ? 0 : 1;
    moves += candidate.is_complete ? 0 : candidate.moves;
  }
  if (runs == 0) return;
  left.runs.reserve(runs);
  left.moves.reserve(moves);
  left.targets.reserve(targets_.size());
  for (const Candidate& candidate : candidates_) {
    if (candidate.is_complete) continue;
    const auto first = static_cast<std::uint32_t>(left.moves.size());
    left.runs.push_back({candidate.run, first, candidate.moves});
    std::ranges::copy(std::span(moves_).subspan(candidate.first_move, candidate.moves),
                      std::back_inserter(left.moves));
  }
  for (const Target& target : targets_) left.targets.push_back(target.run);
  arena_.left_over_ = std::move(left);
} catch (const std::bad_alloc&) {
  // Without left-over moves, the next request makes a plan of its own.
}

// Drops candidates that would save nothing: runs whose pages would each get memory alone, as many
// pages as before. Sorts the rest: runs that need the least new memory first, which is likely to be
// there, and of these the largest. Runs that share a target follow each other.
void Arena::Meshing::drop_useless() {
  std::vector<std::uint32_t> items(targets_.size());
  const auto begin_count = [&] {
    used_targets_ = 0;
    for (std::size_t i = 0; i < items.size(); ++i) items[i] = targets_[i].is_own ? 1 : 0;
  };
  const auto count_items = [&](const Candidate& candidate) {
    each_item(candidate, [&](std::uint32_t target) {
      if (items[target]++ == 0) ++used_targets_;
    });
  };
  begin_count();
  for (const Candidate& candidate : candidates_) count_items(candidate);
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    if (candidate.items * span_ < arena_.run(candidate.run).span) return false;
    for (std::uint32_t i = 0; i < candidate.moves; ++i)
      if (items[moves_[candidate.first_move + i].target] != 1) return false;
    return true;
  });
  std::ranges::sort(candidates_, {}, [&](const Candidate& candidate) {
    return std::tuple(candidate.new_targets, candidate.items,
                      UINT64_MAX - arena_.run(candidate.run).bytes(),
                      moves_[candidate.first_move].target, candidate.run);
  });
  begin_count();
  for (const Candidate& candidate : candidates_) count_items(candidate);
}

}  // namespace cuwarden::pool
