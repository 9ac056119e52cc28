// Prepares the memory between which blocks are moved (moves.cpp), and gives it back: new
// memory, and the old memory of runs at scratch addresses.
#include <span>

#include "runtime_hooks/pool/meshing/arena_meshing.hpp"

namespace cuwarden::pool {
namespace {

// Most and fewest scratch addresses that are reserved. The runs that a pause moves may have several
// times as many pages as it moves. Each run needs less than the fewest.
constexpr std::uint64_t most_scratch_bytes = std::uint64_t{16} << 30,
                        fewest_scratch_bytes = std::uint64_t{64} << 20;

}  // namespace

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

bool Arena::Meshing::take_scratch() noexcept {
  std::uint64_t bytes = 0;
  for (const Candidate& candidate : candidates_)
    if (candidate.exchanges_first()) bytes += arena_.run(candidate.run).bytes();
  if (bytes == 0) return true;
  // A limit on the process's addresses may leave room for fewer.
  for (bytes = std::min(bytes, most_scratch_bytes);; bytes /= 2) {
    scratch_bytes_ = whole_addresses(bytes);
    if (real_.cuMemAddressReserve(&scratch_, scratch_bytes_, 0, 0, 0) == CUDA_SUCCESS) return true;
    if (bytes / 2 < fewest_scratch_bytes) break;
  }
  scratch_ = 0;
  return false;
}

bool Arena::Meshing::may_take_old(const Candidate& candidate) const noexcept {
  return candidate.old.handle != 0 || !candidate.exchanges_first() ||
         (!maps_no_more_ &&
          used_scratch_bytes_ + arena_.run(candidate.run).bytes() <= scratch_bytes_);
}

bool Arena::Meshing::take_old(Candidate& candidate) noexcept {
  OldMemory& old = candidate.old;
  if (old.handle != 0) return true;
  const Run& run = arena_.run(candidate.run);
  const bool is_mapped = candidate.exchanges_first();
  const OldMemory taken{.at = is_mapped ? scratch_ + used_scratch_bytes_ : 0, .bytes = run.bytes()};
  if (!may_take_old(candidate)) return false;
  if (real_.cuMemRetainAllocationHandle(
          &old.handle, reinterpret_cast<void*>(arena_.address_of(run.first))) != CUDA_SUCCESS) {
    old = {};
    return false;
  }
  if (!is_mapped) return true;
  if (real_.cuMemMap(taken.at, taken.bytes, 0, old.handle, 0) == CUDA_SUCCESS) {
    old.at = taken.at;
    old.bytes = taken.bytes;
    used_scratch_bytes_ += taken.bytes;
    if (Peers::grant(real_, old.at, old.bytes, arena_.device(), 0) == CUDA_SUCCESS) return true;
  }
  let_go(old);
  maps_no_more_ = true;
  return false;
}

void Arena::Meshing::let_go(OldMemory& old) noexcept {
  if (old.handle == 0) return;
  if (old.at != 0 && real_.cuMemUnmap(old.at, old.bytes) != CUDA_SUCCESS) is_scratch_stuck_ = true;
  real_.cuMemRelease(old.handle);
  old = {};
}

void Arena::Meshing::let_go_of_waiting() noexcept {
  for (Candidate& candidate : std::span(candidates_).subspan(next_)) {
    if (candidate.old.handle == 0) break;
    let_go(candidate.old);
  }
  if (!is_scratch_stuck_) used_scratch_bytes_ = 0;
}

// Makes the target's memory ready to be mapped. Returns false if the driver refuses.
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
  CUresult created = real_.cuMemCreate(&target.handle, target_bytes(), &arena_.where_, 0);
  if (created != CUDA_SUCCESS && !old_.empty()) {
    release_old();
    created = real_.cuMemCreate(&target.handle, target_bytes(), &arena_.where_, 0);
  }
  if (created != CUDA_SUCCESS) {
    target.handle = 0;
    is_full_ = true;
    return false;
  }
  arena_.counts_.held_bytes += target_bytes();
  spare_bytes_ += target_bytes();
  return true;
}

bool Arena::Meshing::make_targets(const Candidate& candidate) noexcept {
  for (std::uint32_t i = 0; i < candidate.moves; ++i)
    if (!make(targets_[moves_[candidate.first_move + i].target])) return false;
  return true;
}

void Arena::Meshing::drop(Target& target) noexcept {
  real_.cuMemRelease(target.handle);
  target.handle = 0;
  arena_.counts_.held_bytes -= target_bytes();
  spare_bytes_ -= target_bytes();
}

void Arena::Meshing::release_old() noexcept {
  for (OldMemory& old : old_) let_go(old);
  old_.clear();
}

// Releases the handles of all memory, and the scratch addresses. Pages keep their memory by their
// own mappings.
void Arena::Meshing::give_up_targets() noexcept {
  for (Candidate& candidate : candidates_) let_go(candidate.old);
  for (const Target& target : targets_)
    if (target.handle != 0) real_.cuMemRelease(target.handle);
  if (scratch_ != 0 && !is_scratch_stuck_) real_.cuMemAddressFree(scratch_, scratch_bytes_);
}

void Arena::Meshing::drop_spare() noexcept {
  if (spare_bytes_ == 0) return;
  for (Target& target : targets_)
    if (target.handle != 0 && target.run == 0) drop(target);
}

}  // namespace cuwarden::pool
