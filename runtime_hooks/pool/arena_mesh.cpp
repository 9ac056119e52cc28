// Moves blocks so that pages of addresses share memory, as planned in arena_mesh_candidates.cpp:
// the pauses, the memory to move into, and the copies.
#include "runtime_hooks/pool/arena_meshing.hpp"

namespace cuwarden::pool {
namespace {

constexpr int most_tries = 4;
// Most pages that are copied before one wait for all copies, and most for which memory is made
// before a pause: until they are moved, other threads may lack that memory.
constexpr std::uint32_t most_moves = 64, most_moves_ahead = 256;
// Most parts of pages that are announced as withheld before one wait for copies: host memory is
// taken for them in the pause.
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

// The parts stay announced if the addresses of the candidate's run are lost, because they are
// withheld.
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

bool Arena::Meshing::make_targets(const Candidate& candidate) noexcept {
  for (std::uint32_t i = 0; i < candidate.moves; ++i)
    if (!make(targets_[moves_[candidate.first_move + i].target])) return false;
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
