// Moves blocks so that pages of addresses share memory, as planned in arena_mesh_candidates.cpp.
#include <span>

#include "runtime_hooks/pool/arena_meshing.hpp"

namespace cuwarden::pool {
namespace {

constexpr int most_tries = 4;
// Most pages that are copied before one wait for all copies, and most for which memory is made
// before a pause: until they are moved, other threads may lack that memory.
constexpr std::uint32_t most_moves = 64, most_moves_ahead = 256;
// Most parts of pages that are withheld for pages which are copied before one wait: a pause ends
// only after all of them.
constexpr std::uint64_t most_parts = 16384;

}  // namespace

// One plan serves all pauses: a second plan would find runs that the first one has moved only in
// part. Memory to move into is made before the first pause, as far as there is room for it. Before
// a later one, the program gets on with its work and may need the memory.
std::uint64_t Arena::Meshing::run(const Pause& pause, std::uint64_t needed_bytes,
                                  std::uint64_t enough_bytes) noexcept {
  const std::uint64_t held = arena_.counts_.held_bytes;
  const auto gained = [&] {
    return held - std::min(held, arena_.counts_.held_bytes - spare_bytes_);
  };
  bool goes_on = true, is_first = true;
  while (goes_on && gained() < needed_bytes && has_next()) {
    if (is_first) make_ahead(enough_bytes - gained());
    if (!pause.begin()) break;
    if (!std::exchange(is_first, false)) make_ahead(enough_bytes - gained());
    goes_on = is_coherent();
    if (goes_on) {
      do {
        goes_on = move_batch(enough_bytes - gained());
      } while (goes_on && gained() < enough_bytes && has_next() && !pause.is_over());
    }
    arena_.counts_.pause_ns += pause.end();
    withhold_joined();
    release_old();
    drop_spare();
  }
  drop_spare();
  return gained();
}

void Arena::Meshing::drop_spare() noexcept {
  if (spare_bytes_ == 0) return;
  for (Target& target : targets_)
    if (target.handle != 0 && target.run == 0) drop(target);
}

bool Arena::Meshing::has_next() noexcept {
  while (next_ != candidates_.size() && !make_targets(candidates_[next_])) {
    lacked_room_ = true;
    ++next_;
  }
  return next_ != candidates_.size();
}

void Arena::Meshing::make_ahead(std::uint64_t bytes) noexcept {
  std::uint64_t saved = 0;
  std::uint32_t moves = 0;
  for (std::size_t at = next_; at < candidates_.size() && saved < bytes && moves < most_moves_ahead;
       ++at) {
    const std::uint64_t held = arena_.counts_.held_bytes;
    if (!make_targets(candidates_[at])) return;
    const std::uint64_t given = arena_.run(candidates_[at].run).bytes();
    saved += given - std::min(given, arena_.counts_.held_bytes - held);
    moves += candidates_[at].moves;
  }
}

bool Arena::Meshing::move_batch(std::uint64_t bytes) noexcept {
  const std::size_t first = next_;
  const std::uint64_t held = arena_.counts_.held_bytes;
  std::uint64_t given = 0, announced = 0;
  const auto saved = [&] { return given - std::min(given, arena_.counts_.held_bytes - held); };
  for (std::uint32_t moves = 0; next_ != candidates_.size() && moves < most_moves &&
                                announced < most_parts && saved() < bytes;) {
    const Candidate& candidate = candidates_[next_];
    if (!make_targets(candidate)) break;
    given += arena_.run(candidate.run).bytes();
    announced += withheld_parts(candidate);
    moves += candidate.moves;
    ++next_;
  }
  try {
    arena_.packing_.announce_withheld(announced);
  } catch (...) {
    return false;
  }
  bool good = true;
  for (std::size_t at = first; good && at != next_; ++at) {
    const auto move = moves_.begin() + candidates_[at].first_move;
    good = std::all_of(move, move + candidates_[at].moves,
                       [&](const Move& each) { return copy(each); });
  }
  // Copies are waited for even if one could not be started: they would write to memory that is used
  // for something else next.
  good = real_.cuStreamSynchronize(nullptr) == CUDA_SUCCESS && good;
  for (std::size_t at = first; at != next_; ++at) {
    good = good && (!verifies_ || is_copied_right(candidates_[at])) && exchange(candidates_[at]);
    if (!good) give_up(candidates_[at]);
  }
  return good;
}

// What was announced is still needed if the addresses of the candidate's run are lost, because they
// are withheld.
void Arena::Meshing::give_up(const Candidate& candidate) noexcept {
  const Run& run = arena_.run(candidate.run);
  const std::uint64_t parts = withheld_parts(candidate);
  if (run.is_lost)
    arena_.pages_[run.first].withheld_parts += static_cast<std::uint32_t>(parts);
  else
    arena_.packing_.renounce_withheld(parts);
}

// The free addresses of a moved page are withheld; and so are, in the host page, the offsets that
// its blocks take.
std::uint32_t Arena::Meshing::withheld_parts(const Move& move) const noexcept {
  return 1 + arena_.pages_[move.page].blocks;
}

std::uint64_t Arena::Meshing::withheld_parts(const Candidate& candidate) const noexcept {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < candidate.moves; ++i)
    sum += withheld_parts(moves_[candidate.first_move + i]);
  return sum;
}

// Reserves all host memory that a move needs, so that none can be lacking while device memory is
// exchanged.
void Arena::Meshing::reserve() {
  const std::size_t runs = arena_.runs_.size() + targets_.size() + 1;
  arena_.runs_.reserve(runs);
  arena_.unused_runs_.reserve(runs);
  old_.reserve(candidates_.size());
  joined_.reserve(moves_.size());
  arena_.packing_.announce_withheld(0);
}

// Makes the target's memory available for copying into. Returns false if the driver refuses.
bool Arena::Meshing::make(Target& target) noexcept {
  if (target.handle != 0) return true;
  if (target.is_own) {
    if (real_.cuMemRetainAllocationHandle(&target.handle, reinterpret_cast<void*>(target.at)) ==
        CUDA_SUCCESS)
      return true;
    target.handle = 0;
    return false;
  }
  if (is_full_) return false;
  target.at = scratch_ + static_cast<std::uint64_t>(&target - targets_.data()) * page_bytes;
  CUresult created = real_.cuMemCreate(&target.handle, page_bytes, &arena_.where_, 0);
  if (created != CUDA_SUCCESS && !old_.empty()) {
    release_old();
    created = real_.cuMemCreate(&target.handle, page_bytes, &arena_.where_, 0);
  }
  if (created != CUDA_SUCCESS) {
    target.handle = 0;
    is_full_ = true;
    return false;
  }
  if (real_.cuMemMap(target.at, page_bytes, 0, target.handle, 0) != CUDA_SUCCESS) {
    real_.cuMemRelease(target.handle);
    target.handle = 0;
    return false;
  }
  arena_.counts_.held_bytes += page_bytes;
  spare_bytes_ += page_bytes;
  if (Peers::grant(real_, target.at, page_bytes, arena_.device(), 0) == CUDA_SUCCESS) return true;
  drop(target);
  return false;
}

void Arena::Meshing::drop(Target& target) noexcept {
  real_.cuMemUnmap(target.at, page_bytes);
  real_.cuMemRelease(target.handle);
  target.handle = 0;
  arena_.counts_.held_bytes -= page_bytes;
  spare_bytes_ -= page_bytes;
}

void Arena::Meshing::release_old() noexcept {
  for (const CUmemGenericAllocationHandle old : old_) real_.cuMemRelease(old);
  old_.clear();
}

// Releases the targets' handles and scratch addresses. Pages that were moved keep the memory by
// their own mappings.
void Arena::Meshing::give_up_targets() noexcept {
  bool all_unmapped = true;
  for (const Target& target : targets_) {
    if (target.handle == 0) continue;
    if (!target.is_own)
      all_unmapped = real_.cuMemUnmap(target.at, page_bytes) == CUDA_SUCCESS && all_unmapped;
    real_.cuMemRelease(target.handle);
  }
  if (scratch_ != 0 && all_unmapped) real_.cuMemAddressFree(scratch_, scratch_bytes());
}

// Starts copies of all blocks in the page to the target's memory, at the same offsets. Returns
// false if one could not be started. The first page of a new target is copied whole, by one copy.
// Copies of other pages follow it in the stream, and write between its blocks.
bool Arena::Meshing::copy(const Move& move) noexcept {
  Target& target = targets_[move.target];
  const CUdeviceptr from = arena_.address_of(move.page), to = target.at;
  if (!target.is_own && target.whole_item == no_item) {
    target.whole_item = move.item;
    return real_.cuMemcpyDtoDAsync_v2(to, from, page_bytes, nullptr) == CUDA_SUCCESS;
  }
  // All pages of an item have the same memory.
  if (target.whole_item == move.item) return true;
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

// Maps the memory behind `handle` at the page's address and grants access to it. Returns false,
// with nothing mapped, if the driver refuses.
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

// Neighbouring pages get access by one call.
bool Arena::Meshing::map_targets(const Candidate& candidate) noexcept {
  const auto moves = std::span(moves_).subspan(candidate.first_move, candidate.moves);
  std::size_t mapped = 0, granted = 0;
  while (mapped < moves.size() &&
         real_.cuMemMap(arena_.address_of(moves[mapped].page), page_bytes, 0,
                        targets_[moves[mapped].target].handle, 0) == CUDA_SUCCESS)
    ++mapped;
  while (mapped == moves.size() && granted < moves.size()) {
    std::size_t end = granted + 1;
    while (end < moves.size() && moves[end].page == moves[end - 1].page + 1) ++end;
    if (Peers::grant(real_, arena_.address_of(moves[granted].page), (end - granted) * page_bytes,
                     arena_.device(), arena_.peers_.of(arena_.device())) != CUDA_SUCCESS)
      break;
    granted = end;
  }
  if (granted == moves.size()) return true;
  for (const Move& move : moves.first(mapped))
    real_.cuMemUnmap(arena_.address_of(move.page), page_bytes);
  return false;
}

// Maps the run's own memory again at its first `unmapped_pages` pages. Memory that the driver
// refuses to map is counted as lost, and takes no new blocks. It was announced, with its moves.
void Arena::Meshing::undo(Run& run, std::uint64_t unmapped_pages,
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
  if (all) return;
  arena_.counts_.lost_bytes += run.bytes();
  run.is_lost = true;
  arena_.each_page(run, [&](std::uint64_t page) {
    arena_.packing_.withhold(arena_.address_of(page), page_bytes);
  });
}

// Unmaps the run's memory and maps the targets' memory at the same addresses. Returns false if the
// driver refuses; the addresses then have their old memory again.
bool Arena::Meshing::swap_memory(const Candidate& candidate, Run& run) noexcept {
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
  if (!good || !map_targets(candidate)) {
    undo(run, unmapped, own);
    real_.cuMemRelease(own);
    return false;
  }
  old_.push_back(own);
  return true;
}

// Turns the target's run, a single page, into one that several pages share.
void Arena::Meshing::share(const Target& target) noexcept {
  Run& run = arena_.run(target.run);
  run.is_shared = true;
  run.host = run.first;
  ++arena_.counts_.meshed_pages;
}

// Adds the moved page, which was announced, to the run of the pages that share the target's memory.
// What the page's blocks take is withheld after the pause, because that takes time.
void Arena::Meshing::join(const Move& move) noexcept {
  Target& target = targets_[move.target];
  if (target.run == 0) {
    if (arena_.unused_runs_.empty()) {
      arena_.runs_.emplace_back();
      arena_.unused_runs_.push_back(static_cast<RunIndex>(arena_.runs_.size()));
    }
    spare_bytes_ -= page_bytes;
    target.run = arena_.unused_runs_.back();
    arena_.unused_runs_.pop_back();
    arena_.run(target.run) = {.is_shared = true, .host = move.page};
  }
  Run& run = arena_.run(target.run);
  Page& page = arena_.pages_[move.page];
  page.run = target.run;
  page.next = run.count == 0 ? 0 : static_cast<std::uint32_t>(run.first + 1);
  page.withheld_parts = withheld_parts(move);
  run.first = move.page;
  ++run.count;
  ++run.pages_in_use;
  ++arena_.counts_.meshed_pages;
  if (run.host != move.page) joined_.push_back(move.page);
}

// The arena's lock is held until then, so that no block is placed meanwhile.
void Arena::Meshing::withhold_joined() noexcept {
  Packing& packing = arena_.packing_;
  for (const std::uint64_t page : joined_) {
    const std::uint64_t start = arena_.address_of(page),
                        host = arena_.address_of(arena_.run(arena_.pages_[page].run).host);
    packing.withhold(start, page_bytes);
    packing.each_taken(start, page_bytes, [&](std::uint64_t first, std::uint64_t end) {
      packing.withhold(host + (first - start), end - first);
    });
  }
  joined_.clear();
}

bool Arena::Meshing::make_targets(const Candidate& candidate) noexcept {
  for (std::uint32_t i = 0; i < candidate.moves; ++i)
    if (!make(targets_[moves_[candidate.first_move + i].target])) return false;
  return true;
}

bool Arena::Meshing::exchange(const Candidate& candidate) noexcept {
  Run& run = arena_.run(candidate.run);
  if (!swap_memory(candidate, run)) return false;
  arena_.drop_run(run);
  is_full_ = false;
  each_alone(candidate, [&](const Target& target) { share(target); });
  const auto first = moves_.begin() + candidate.first_move;
  std::for_each(first, first + candidate.moves, [&](const Move& move) { join(move); });
  return true;
}

std::uint64_t Arena::mesh(const driver::RealDriver& real, const Pause& pause,
                          const MeshGoal& goal) {
  // The lock is held during the pauses, so that blocks do not change while they are moved. The
  // pauses are bounded. A thread that waits for this lock waits no longer than that, and holds up
  // no thread at the gate.
  const Locked held(lock_, Locked::ForLong{});
  if (!held || has_ended() || is_closing() || counts_.differing_bytes != 0 ||
      real.cuMemRetainAllocationHandle == nullptr || real.cuMemcpyDtoDAsync_v2 == nullptr ||
      real.cuStreamSynchronize == nullptr)
    return 0;
  std::uint64_t gained = 0, least = goal.least_bytes;
  bool copies_need_memory = goal.copies_need_memory;
  // Runs one plan. Returns false if memory to move into was lacking, or if new memory would save
  // nothing.
  const auto pass = [&](Meshing::Into into) {
    Meshing meshing(*this, real, into, goal.verifies);
    if (meshing.gain() < std::exchange(least, 0)) return true;
    if (std::exchange(copies_need_memory, false) && !meshing.have_copies_their_memory(pause))
      return true;
    if (meshing.gain() == 0 || !meshing.take_scratch()) return false;
    gained += meshing.run(pause, goal.needed_bytes - gained, goal.enough_bytes - gained);
    return !meshing.lacked_room();
  };
  try {
    for (int tries = 0; tries < most_tries && gained < goal.needed_bytes; ++tries) {
      if (pass(Meshing::Into::new_memory) || counts_.differing_bytes != 0) break;
      const std::uint64_t before = gained;
      if (gained < goal.needed_bytes) pass(Meshing::Into::own_memory);
      if (gained == before || counts_.differing_bytes != 0) break;
    }
  } catch (...) {
    if (gained == 0) throw;
  }
  counts_.returned_bytes += gained;
  counts_.meshed_bytes += gained;
  return gained;
}

}  // namespace cuwarden::pool
