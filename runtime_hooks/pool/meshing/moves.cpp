// Moves blocks so that pages of addresses share memory, as planned in candidates.cpp:
// the pauses, and the copies.
#include <span>

#include "runtime_hooks/pool/meshing/arena_meshing.hpp"

namespace cuwarden::pool {
namespace {

// Most pages that are copied before one wait for all copies.
constexpr std::uint32_t most_moves = 64;
// Most pages whose moves are prepared before a pause, as many as a pause of 50 ms moves on an H200;
// and most for which memory is made before it. Until these are moved, other threads may lack the
// memory.
constexpr std::uint32_t most_moves_ahead = 1536, most_made_ahead = 512;
// Most parts of pages that are announced as withheld before one wait for copies: host memory is
// taken for them in the pause.
constexpr std::uint64_t most_parts = 16384;

}  // namespace

// One plan serves all pauses: a second plan would find runs that the first one has moved only in
// part. Moves are prepared before each pause. With `prepares_memory`, memory to move into is made
// before the first one, as far as there is room for it. Before any other pause, it is made for the
// next run only, because the program gets on with its work and may need the memory.
std::uint64_t Arena::Meshing::run(Pause& pause, std::uint64_t needed_bytes,
                                  std::uint64_t enough_bytes, bool prepares_memory) noexcept {
  const std::uint64_t held = arena_.counts_.held_bytes;
  const auto gained = [&] {
    return held - std::min(held, arena_.counts_.held_bytes - spare_bytes_);
  };
  bool goes_on = true, is_first = prepares_memory;
  const auto prepares = [&] {
    const Timed timed(pause, arena_.counts_.prepare_ns);
    if (!has_next()) return false;
    prepare_ahead(enough_bytes - gained(), std::exchange(is_first, false));
    return true;
  };
  while (goes_on && gained() < needed_bytes && prepares()) {
    if (!pause.begin()) {
      was_stopped_ = true;
      break;
    }
    goes_on = is_coherent();
    if (goes_on) {
      do {
        goes_on = move_batch(enough_bytes - gained());
      } while (goes_on && gained() < enough_bytes && has_next() && !pause.is_over());
    }
    arena_.counts_.pause_ns += pause.end();
    ++arena_.counts_.pauses;
    withhold_joined();
    const Timed timed(pause, arena_.counts_.release_ns);
    release_old();
    let_go_of_waiting();
    drop_spare();
  }
  drop_spare();
  has_failed_ = !goes_on;
  was_stopped_ = was_stopped_ || has_failed_;
  return gained();
}

// Candidates are prepared in their order, so that no scratch address is in use for a later one if
// there is none for the next.
bool Arena::Meshing::has_next() noexcept {
  for (; next_ != candidates_.size(); ++next_) {
    Candidate& candidate = candidates_[next_];
    const std::uint64_t bytes = arena_.run(candidate.run).bytes();
    if (candidate.exchanges_first() && candidate.old.handle == 0 &&
        used_scratch_bytes_ + bytes > scratch_bytes_) {
      release_old();
      if (!is_scratch_stuck_) used_scratch_bytes_ = 0;
    }
    if (prepare(candidate)) return true;
    old_.push_back(std::exchange(candidate.old, {}));
    lacked_room_ = true;
  }
  return false;
}

void Arena::Meshing::prepare_ahead(std::uint64_t bytes, bool makes_targets) noexcept {
  std::uint64_t saved = 0;
  std::uint32_t moves = 0;
  // Before is_coherent() has looked, a second address may take memory of its own.
  const std::uint32_t most = arena_.is_coherent_ ? most_moves_ahead : 1;
  bool makes = makes_targets;
  for (std::size_t at = next_; at < candidates_.size() && saved < bytes && moves < most; ++at) {
    Candidate& candidate = candidates_[at];
    const std::uint64_t held = arena_.counts_.held_bytes;
    if (!take_old(candidate)) return;
    // Once there is no room for new memory, old memory still gets its second addresses.
    makes = makes && moves < most_made_ahead && make_targets(candidate);
    const std::uint64_t given = arena_.run(candidate.run).bytes();
    saved += given - std::min(given, makes ? arena_.counts_.held_bytes - held
                                           : candidate.new_targets * target_bytes());
    moves += candidate.moves * span_;
  }
}

bool Arena::Meshing::take_batch(std::uint64_t bytes) noexcept {
  const std::size_t first = next_;
  const std::uint64_t held = arena_.counts_.held_bytes;
  std::uint64_t given = 0, announced = 0;
  const auto saved = [&] { return given - std::min(given, arena_.counts_.held_bytes - held); };
  for (std::uint32_t moves = 0; next_ != candidates_.size() && moves < most_moves &&
                                announced < most_parts && saved() < bytes;) {
    Candidate& candidate = candidates_[next_];
    if (!prepare(candidate)) break;
    given += arena_.run(candidate.run).bytes();
    announced += withheld_parts(candidate);
    moves += candidate.moves * span_;
    ++next_;
  }
  parts_.clear();
  started_ = 0;
  try {
    // A page has at most as many parts to be copied as it has blocks.
    parts_.reserve(announced);
    arena_.packing_.announce_withheld(announced);
  } catch (...) {
    next_ = first;
    return false;
  }
  return true;
}

// The device copies while the memory of further candidates is exchanged. All copies that were
// started are waited for: they would write to memory that is used for something else next.
bool Arena::Meshing::copy_batch(std::size_t first) noexcept {
  const auto batch = std::span(candidates_).subspan(first, next_ - first);
  for (const Candidate& candidate : batch)
    if (!candidate.exchanges_first()) list_copies(candidate);
  bool good = start_listed(true);
  for (Candidate& candidate : batch) {
    if (!candidate.exchanges_first()) continue;
    if (!good || !exchange(candidate)) break;
    list_copies(candidate);
    good = start_listed(false);
  }
  good = good && start_listed(true);
  return real_.cuStreamSynchronize(nullptr) == CUDA_SUCCESS && good;
}

bool Arena::Meshing::complete(Candidate& candidate) noexcept {
  if (candidate.exchanges_first() && !candidate.is_exchanged) return false;
  if (verifies_ && !is_copied_right(candidate)) return false;
  if (!candidate.is_exchanged && !exchange(candidate)) return false;
  commit(candidate);
  return true;
}

bool Arena::Meshing::move_batch(std::uint64_t bytes) noexcept {
  const std::size_t first = next_;
  if (!take_batch(bytes)) return false;
  const auto batch = std::span(candidates_).subspan(first, next_ - first);
  const bool are_copied = copy_batch(first);
  bool all = are_copied;
  for (Candidate& candidate : batch) {
    // After a failure, no further memory is exchanged.
    candidate.is_complete = are_copied && (all || candidate.is_exchanged) &&
                            arena_.counts_.differing_bytes == 0 && complete(candidate);
    all = all && candidate.is_complete;
  }
  if (!all) give_up_incomplete(batch);
  return all;
}

// Memory that is in the way of the old one is given back first, since the driver may need memory
// for its own tables.
void Arena::Meshing::give_up_incomplete(std::span<Candidate> batch) noexcept {
  for (Candidate& candidate : batch)
    if (candidate.is_exchanged) unmap_targets(candidate);
  release_old();
  drop_spare();
  for (Candidate& candidate : batch)
    if (!candidate.is_complete) give_up(candidate);
}

// The parts stay announced if the addresses of the candidate's run are lost, because they are
// withheld.
void Arena::Meshing::give_up(Candidate& candidate) noexcept {
  if (std::exchange(candidate.is_unmapped, false)) {
    Run& moved = arena_.run(candidate.run);
    undo(moved, moved.count / moved.span, candidate.old.handle);
  }
  const Run& run = arena_.run(candidate.run);
  const std::uint64_t parts = withheld_parts(candidate);
  if (run.is_lost)
    arena_.pages_[run.first].withheld_parts += static_cast<std::uint32_t>(parts);
  else
    arena_.packing_.renounce_withheld(parts);
}

std::uint32_t Arena::Meshing::withheld_parts(const Move& move) const noexcept {
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < span_; ++i) sum += withheld_parts(arena_.pages_[move.page + i]);
  return sum;
}

std::uint64_t Arena::Meshing::withheld_parts(const Candidate& candidate) const noexcept {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < candidate.moves; ++i)
    sum += withheld_parts(moves_[candidate.first_move + i]);
  return sum;
}

CUdeviceptr Arena::Meshing::copied_from(const Candidate& candidate,
                                        const Move& move) const noexcept {
  if (!candidate.exchanges_first()) return arena_.address_of(move.page);
  const Run& run = arena_.run(candidate.run);
  const std::uint64_t offset =
      run.is_shared ? arena_.pages_[move.page].offset : move.page - run.first;
  return candidate.old.at + offset * page_bytes;
}

CUdeviceptr Arena::Meshing::copied_to(const Candidate& candidate, const Move& move) const noexcept {
  return candidate.exchanges_first() ? arena_.address_of(move.page) : targets_[move.target].at;
}

// Without the kernel, each part takes a call. So the first item of a new target is copied whole, by
// one copy. Copies of other pages follow it in the stream, and write between its blocks. Copies by
// the kernel have no order.
void Arena::Meshing::list_copies(const Candidate& candidate, const Move& move) noexcept {
  Target& target = targets_[move.target];
  const CUdeviceptr from = copied_from(candidate, move), to = copied_to(candidate, move);
  if (!has_kernel_ && !target.is_own && target.whole_item == no_item) {
    target.whole_item = move.item;
    parts_.push_back({to, from, span_ * page_bytes});
    return;
  }
  // All moves of an item are of the same memory.
  if (target.whole_item == move.item) return;
  const std::uint64_t start = arena_.address_of(move.page);
  const std::size_t of_before = parts_.size();
  arena_.packing_.each_taken(
      start, span_ * page_bytes, [&](std::uint64_t first, std::uint64_t end) {
        if (parts_.size() != of_before &&
            parts_.back().from + parts_.back().bytes == from + (first - start))
          parts_.back().bytes += end - first;
        else
          parts_.push_back({to + (first - start), from + (first - start), end - first});
      });
}

void Arena::Meshing::list_copies(const Candidate& candidate) noexcept {
  for (const Move& move : std::span(moves_).subspan(candidate.first_move, candidate.moves))
    list_copies(candidate, move);
}

bool Arena::Meshing::start_listed(bool all) noexcept {
  auto waiting = std::span<const CopyPart>(parts_).subspan(started_);
  if (!all && has_kernel_)
    waiting = waiting.first(waiting.size() / CopyKernel::most_parts * CopyKernel::most_parts);
  started_ += waiting.size();
  return start_copies(real_, arena_.copy_kernel_, waiting);
}

}  // namespace cuwarden::pool
