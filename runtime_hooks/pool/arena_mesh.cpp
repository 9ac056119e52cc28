// Pages of addresses that come to share memory.
#include <algorithm>

#include "runtime_hooks/pool/arena.hpp"
#include "runtime_hooks/pool/mesh_plan.hpp"

namespace cuwarden::pool {
namespace {

// What is taken of a run: with more there is little to be gained.
constexpr std::uint64_t most_taken_share = 2;
constexpr int most_pauses = 20;

}  // namespace

// One pass over the runs that are little used. Memory that several pages are to share is made when
// the first of them comes, at an address of its own, to which what lies in them is copied; then
// their addresses get it. A run makes no more of it than it gives back: a little room is enough.
class Arena::Meshing {
 public:
  Meshing(Arena& arena, const driver::RealDriver& real) : arena_(arena), real_(real) {
    find_moves();
    drop_useless();
    reserve();
  }
  ~Meshing() { give_up_scratch(); }
  Meshing(const Meshing&) = delete;
  Meshing& operator=(const Meshing&) = delete;

  // If all of it is done.
  std::uint64_t gain() const noexcept {
    std::uint64_t held = 0;
    for (const Candidate& candidate : candidates_) held += arena_.run(candidate.run).bytes();
    return held - std::min(held, used_targets_ * page_bytes);
  }
  bool take_scratch() noexcept {
    return real_.cuMemAddressReserve(&scratch_, scratch_bytes(), 0, 0, 0) == CUDA_SUCCESS;
  }
  // Until it is enough, or something fails. What was gained.
  std::uint64_t run(const Pause& pause, std::uint64_t enough_bytes) noexcept;

 private:
  struct Move {
    std::uint64_t page = 0;
    std::uint32_t item = 0, target = 0;
  };
  // Of a run, each page with blocks is an item of the plan; of one whose pages share memory
  // already, all of them together: it makes no more memory than it gives back either.
  struct Candidate {
    RunIndex run = 0;
    std::uint32_t first_move = 0, moves = 0, items = 0;
  };
  enum class Moved : std::uint8_t { all, no_room, failed };
  struct Target {
    CUmemGenericAllocationHandle handle = 0;
    RunIndex run = 0;  // that it has become
  };

  PageSteps steps_of(std::uint64_t page) const;
  void find_moves();
  void drop_useless();
  void reserve();
  bool make(Target&) noexcept;
  void drop(Target&) noexcept;
  void give_up_scratch() noexcept;
  std::uint64_t scratch_bytes() const noexcept {
    return whole_addresses(targets_.size() * page_bytes);
  }
  CUdeviceptr scratch_of(const Target& target) const noexcept {
    return scratch_ + static_cast<std::uint64_t>(&target - targets_.data()) * page_bytes;
  }
  bool copy(const Move&) noexcept;
  bool map(std::uint64_t page, std::uint64_t bytes, CUmemGenericAllocationHandle) noexcept;
  bool swap_memory(const Candidate&, const Run&) noexcept;
  void undo(const Run&, std::uint64_t unmapped_pages, CUmemGenericAllocationHandle) noexcept;
  void join(const Move&) noexcept;
  bool make_targets(const Candidate&) noexcept;
  Moved move(const Candidate&) noexcept;

  Arena& arena_;
  const driver::RealDriver& real_;
  std::vector<Move> moves_;
  std::vector<Candidate> candidates_;
  std::vector<Target> targets_;
  std::uint64_t used_targets_ = 0;
  CUdeviceptr scratch_ = 0;
};

// One plan for all pauses: what is half done would be in the next one's way.
std::uint64_t Arena::Meshing::run(const Pause& pause, std::uint64_t enough_bytes) noexcept {
  const std::uint64_t held = arena_.counts_.held_bytes;
  const auto gained = [&] { return held - std::min(held, arena_.counts_.held_bytes); };
  auto next = candidates_.begin();
  // Without room for the first one nobody need be held up.
  bool goes_on = next != candidates_.end() && make_targets(*next);
  const auto has_more = [&] {
    return goes_on && next != candidates_.end() && gained() < enough_bytes;
  };
  for (int pauses = 0; pauses < most_pauses && has_more() && pause.begin(); ++pauses) {
    do goes_on = move(*next++) != Moved::failed;
    while (has_more() && !pause.is_over());
    arena_.counts_.pause_ns += pause.end();
  }
  for (Target& target : targets_)
    if (target.handle != 0 && target.run == 0) drop(target);
  return gained();
}

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

// Nothing may be lacking once memory is being exchanged.
void Arena::Meshing::reserve() {
  const std::size_t runs = arena_.runs_.size() + targets_.size() + 1;
  arena_.runs_.reserve(runs);
  arena_.unused_runs_.reserve(runs);
  arena_.packing_.announce_withheld(0);
}

bool Arena::Meshing::make(Target& target) noexcept {
  if (target.handle != 0) return true;
  if (real_.cuMemCreate(&target.handle, page_bytes, &arena_.where_, 0) != CUDA_SUCCESS) {
    target.handle = 0;
    return false;
  }
  const CUdeviceptr at = scratch_of(target);
  if (real_.cuMemMap(at, page_bytes, 0, target.handle, 0) != CUDA_SUCCESS) {
    real_.cuMemRelease(target.handle);
    target.handle = 0;
    return false;
  }
  arena_.counts_.held_bytes += page_bytes;
  if (Peers::grant(real_, at, page_bytes, arena_.device(), 0) == CUDA_SUCCESS) return true;
  drop(target);
  return false;
}

void Arena::Meshing::drop(Target& target) noexcept {
  real_.cuMemUnmap(scratch_of(target), page_bytes);
  real_.cuMemRelease(target.handle);
  target.handle = 0;
  arena_.counts_.held_bytes -= page_bytes;
}

// Pages keep their memory by themselves.
void Arena::Meshing::give_up_scratch() noexcept {
  if (scratch_ == 0) return;
  bool all_unmapped = true;
  for (const Target& target : targets_) {
    if (target.handle == 0) continue;
    all_unmapped = real_.cuMemUnmap(scratch_of(target), page_bytes) == CUDA_SUCCESS && all_unmapped;
    real_.cuMemRelease(target.handle);
  }
  if (all_unmapped) real_.cuMemAddressFree(scratch_, scratch_bytes());
}

bool Arena::Meshing::copy(const Move& move) noexcept {
  const CUdeviceptr from = arena_.address_of(move.page), to = scratch_of(targets_[move.target]);
  const auto part = [&](std::uint64_t first, std::uint64_t end) {
    return real_.cuMemcpyDtoDAsync_v2(to + (first - from), first, end - first, nullptr) ==
           CUDA_SUCCESS;
  };
  bool all = true;
  std::uint64_t begun = from, ended = from;
  arena_.packing_.each_taken(from, page_bytes, [&](std::uint64_t first, std::uint64_t end) {
    if (first != ended) {
      if (begun != ended) all = part(begun, ended) && all;
      begun = first;
    }
    ended = end;
  });
  if (begun != ended) all = part(begun, ended) && all;
  return all;
}

bool Arena::Meshing::map(std::uint64_t page, std::uint64_t bytes,
                         CUmemGenericAllocationHandle handle) noexcept {
  const std::uint64_t address = arena_.address_of(page);
  if (real_.cuMemMap(address, bytes, 0, handle, 0) != CUDA_SUCCESS) return false;
  if (Peers::grant(real_, address, bytes, arena_.device(), arena_.peers_.of(arena_.device())) ==
      CUDA_SUCCESS)
    return true;
  real_.cuMemUnmap(address, bytes);
  return false;
}

// The run's own memory once more.
void Arena::Meshing::undo(const Run& run, std::uint64_t unmapped_pages,
                          CUmemGenericAllocationHandle own) noexcept {
  bool all = true;
  if (!run.is_shared) {
    if (unmapped_pages != 0) all = map(run.first, run.bytes(), own);
  } else {
    std::uint64_t at = 0;
    arena_.each_page(run, [&](std::uint64_t page) {
      if (at++ < unmapped_pages) all = map(page, page_bytes, own) && all;
    });
  }
  if (!all) arena_.counts_.lost_bytes += run.bytes();
}

// The addresses get the new memory, or keep what they had.
bool Arena::Meshing::swap_memory(const Candidate& candidate, const Run& run) noexcept {
  CUmemGenericAllocationHandle own = 0;
  if (real_.cuMemRetainAllocationHandle(
          &own, reinterpret_cast<void*>(arena_.address_of(run.first))) != CUDA_SUCCESS)
    return false;
  std::uint64_t unmapped = 0;
  bool good = true;
  if (run.is_shared)
    arena_.each_page(run, [&](std::uint64_t page) {
      good = good && real_.cuMemUnmap(arena_.address_of(page), page_bytes) == CUDA_SUCCESS;
      if (good) ++unmapped;
    });
  else if ((good = real_.cuMemUnmap(arena_.address_of(run.first), run.bytes()) == CUDA_SUCCESS))
    unmapped = run.count;
  std::uint32_t mapped = 0;
  for (; good && mapped < candidate.moves; ++mapped) {
    const Move& move = moves_[candidate.first_move + mapped];
    good = map(move.page, page_bytes, targets_[move.target].handle);
  }
  if (!good) {
    // The last one of these was not.
    for (std::uint32_t i = 0; i + 1 < mapped; ++i)
      real_.cuMemUnmap(arena_.address_of(moves_[candidate.first_move + i].page), page_bytes);
    undo(run, unmapped, own);
  }
  real_.cuMemRelease(own);
  return good;
}

void Arena::Meshing::join(const Move& move) noexcept {
  Target& target = targets_[move.target];
  if (target.run == 0) {
    if (arena_.unused_runs_.empty()) {
      arena_.runs_.emplace_back();
      arena_.unused_runs_.push_back(static_cast<RunIndex>(arena_.runs_.size()));
    }
    target.run = arena_.unused_runs_.back();
    arena_.unused_runs_.pop_back();
    arena_.run(target.run) = {.is_shared = true};
  }
  Run& run = arena_.run(target.run);
  Page& page = arena_.pages_[move.page];
  page.run = target.run;
  page.next = run.count == 0 ? 0 : static_cast<std::uint32_t>(run.first + 1);
  run.first = move.page;
  ++run.count;
  ++run.pages_in_use;
  ++arena_.counts_.meshed_pages;
  arena_.packing_.withhold(arena_.address_of(move.page), page_bytes);
}

bool Arena::Meshing::make_targets(const Candidate& candidate) noexcept {
  for (std::uint32_t i = 0; i < candidate.moves; ++i)
    if (!make(targets_[moves_[candidate.first_move + i].target])) return false;
  return true;
}

Arena::Meshing::Moved Arena::Meshing::move(const Candidate& candidate) noexcept {
  Run& run = arena_.run(candidate.run);
  const auto first = moves_.begin() + candidate.first_move, end = first + candidate.moves;
  const std::uint64_t anew = run.is_shared ? 0 : candidate.moves;
  if (!make_targets(candidate)) return Moved::no_room;
  try {
    arena_.packing_.announce_withheld(anew);
  } catch (...) {
    return Moved::failed;
  }
  if (!std::all_of(first, end, [&](const Move& move) { return copy(move); }) ||
      real_.cuStreamSynchronize(nullptr) != CUDA_SUCCESS || !swap_memory(candidate, run)) {
    arena_.packing_.renounce_withheld(anew);
    return Moved::failed;
  }
  // Those without a block are nobody's any more.
  if (run.is_shared) {
    arena_.each_page(run, [&](std::uint64_t page) {
      if (arena_.pages_[page].blocks == 0)
        arena_.packing_.release(arena_.address_of(page), page_bytes);
    });
  }
  arena_.drop_run(run);
  std::for_each(first, end, [&](const Move& move) { join(move); });
  return Moved::all;
}

std::uint64_t Arena::mesh(const driver::RealDriver& real, const Pause& pause,
                          std::uint64_t least_bytes, std::uint64_t enough_bytes) {
  // The lock is held over the pauses, which have an end: what is moved must stay as it is. Whoever
  // waits for it, waits for no longer than that, and keeps nobody from the gate.
  const Locked held(lock_, Locked::ForLong{});
  if (!held || has_ended() || is_closing() || real.cuMemRetainAllocationHandle == nullptr ||
      real.cuMemcpyDtoDAsync_v2 == nullptr || real.cuStreamSynchronize == nullptr)
    return 0;
  Meshing meshing(*this, real);
  if (meshing.gain() == 0 || meshing.gain() < least_bytes || !meshing.take_scratch()) return 0;
  const std::uint64_t gained = meshing.run(pause, enough_bytes);
  counts_.returned_bytes += gained;
  counts_.meshed_bytes += gained;
  return gained;
}

}  // namespace cuwarden::pool
