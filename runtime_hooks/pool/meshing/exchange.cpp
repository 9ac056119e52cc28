// Exchanges the memory behind addresses, before or after the blocks there are copied
// (moves.cpp), and enters the move.
#include <span>

#include "runtime_hooks/pool/meshing/arena_meshing.hpp"

namespace cuwarden::pool {

// Neighbours get access by one call.
bool Arena::Meshing::map_targets(const Candidate& candidate) noexcept {
  const auto moves = std::span(moves_).subspan(candidate.first_move, candidate.moves);
  const std::uint64_t bytes = target_bytes();
  std::size_t mapped = 0, granted = 0;
  while (mapped < moves.size() &&
         real_.cuMemMap(arena_.address_of(moves[mapped].page), bytes, 0,
                        targets_[moves[mapped].target].handle, 0) == CUDA_SUCCESS)
    ++mapped;
  while (mapped == moves.size() && granted < moves.size()) {
    std::size_t end = granted + 1;
    while (end < moves.size() && moves[end].page == moves[end - 1].page + span_) ++end;
    if (Peers::grant(real_, arena_.address_of(moves[granted].page), (end - granted) * bytes,
                     arena_.device(), arena_.peers_.of(arena_.device())) != CUDA_SUCCESS)
      break;
    granted = end;
  }
  if (granted == moves.size()) return true;
  for (const Move& move : moves.first(mapped))
    real_.cuMemUnmap(arena_.address_of(move.page), bytes);
  return false;
}

// Maps the run's own memory again at its first `unmapped_members` members (a run that is not shared
// counts as one). If the driver refuses that for one of them, the whole run is lost: all its bytes
// are counted, and all its free addresses are withheld. The parts for that were announced before
// the run's moves.
void Arena::Meshing::undo(Run& run, std::uint64_t unmapped_members,
                          CUmemGenericAllocationHandle own) noexcept {
  bool all = true;
  std::uint64_t at = 0;
  arena_.each_member(run, [&](std::uint64_t first) {
    if (at++ < unmapped_members) all = arena_.map_again(real_, first, run.bytes(), own) && all;
  });
  if (!all) arena_.lose(run);
}

bool Arena::Meshing::exchange(Candidate& candidate) noexcept {
  Run& run = arena_.run(candidate.run);
  std::uint64_t unmapped = 0;
  bool good = true;
  arena_.each_member(run, [&](std::uint64_t first) {
    good = good && real_.cuMemUnmap(arena_.address_of(first), run.bytes()) == CUDA_SUCCESS;
    if (good) ++unmapped;
  });
  candidate.is_exchanged = good && map_targets(candidate);
  if (!candidate.is_exchanged) undo(run, unmapped, candidate.old.handle);
  return candidate.is_exchanged;
}

// Pages that cannot be unmapped would keep the whole run from getting its old memory.
void Arena::Meshing::unmap_targets(Candidate& candidate) noexcept {
  for (const Move& move : std::span(moves_).subspan(candidate.first_move, candidate.moves)) {
    const std::uint64_t address = arena_.address_of(move.page);
    if (real_.cuMemUnmap(address, target_bytes()) != CUDA_SUCCESS)
      real_.cuMemUnmap(address, target_bytes());
  }
  candidate.is_exchanged = false;
  candidate.is_unmapped = true;
}

// Turns the target's run into one that several members share: its pages are the first member.
void Arena::Meshing::share(const Target& target) noexcept {
  Run& run = arena_.run(target.run);
  arena_.count_unused(run, -1);
  run.is_shared = true;
  run.host = run.first;
  arena_.count_unused(run, 1);
  for (std::uint32_t i = 0; i < span_; ++i) arena_.pages_[run.first + i].offset = i;
  arena_.counts_.meshed_pages += span_;
}

// Adds the moved pages, which were announced, as a member of the run that has the target's memory.
// Addresses are withheld after the pause (withhold_joined()), because that takes time.
void Arena::Meshing::join(const Move& move) noexcept {
  Target& target = targets_[move.target];
  if (target.run == 0) {
    if (arena_.unused_runs_.empty()) {
      arena_.runs_.emplace_back();
      arena_.unused_runs_.push_back(static_cast<RunIndex>(arena_.runs_.size()));
    }
    spare_bytes_ -= target_bytes();
    target.run = arena_.unused_runs_.back();
    arena_.unused_runs_.pop_back();
    arena_.run(target.run) = {.span = span_, .is_shared = true, .host = move.page};
  }
  Run& run = arena_.run(target.run);
  arena_.pages_[move.page].next = run.count == 0 ? 0 : static_cast<std::uint32_t>(run.first + 1);
  for (std::uint32_t i = 0; i < span_; ++i) {
    Page& page = arena_.pages_[move.page + i];
    page.run = target.run;
    page.offset = i;
    page.withheld_parts = withheld_parts(page);
    run.pages_in_use += page.blocks != 0 ? 1 : 0;
  }
  run.first = move.page;
  run.filled_at = ++arena_.changes_;
  run.count += span_;
  arena_.counts_.meshed_pages += span_;
  if (run.host != move.page) joined_.push_back(move.page);
}

// The arena's lock is held until then, so that no block is placed meanwhile.
void Arena::Meshing::withhold_joined() noexcept {
  Packing& packing = arena_.packing_;
  for (const std::uint64_t first : joined_) {
    const Run& run = arena_.run(arena_.pages_[first].run);
    const std::uint64_t start = arena_.address_of(first), host = arena_.address_of(run.host);
    for (std::uint64_t page = first; page != first + run.span; ++page)
      packing.withhold(arena_.address_of(page), page_bytes);
    packing.each_taken(start, run.bytes(), [&](std::uint64_t begin, std::uint64_t end) {
      // A part that is withheld lies in one page.
      for (std::uint64_t at = begin; at < end;) {
        const std::uint64_t stop = std::min(end, down_to_page(at) + page_bytes);
        packing.withhold(host + (at - start), stop - at);
        at = stop;
      }
    });
  }
  joined_.clear();
}

void Arena::Meshing::commit(Candidate& candidate) noexcept {
  arena_.drop_run(arena_.run(candidate.run), span_);
  old_.push_back(std::exchange(candidate.old, {}));
  candidate.is_exchanged = false;
  is_full_ = maps_no_more_ = false;
  each_target(candidate, [&](const Target& target) {
    if (is_alone(target)) share(target);
  });
  for (const Move& move : std::span(moves_).subspan(candidate.first_move, candidate.moves))
    join(move);
}

}  // namespace cuwarden::pool
