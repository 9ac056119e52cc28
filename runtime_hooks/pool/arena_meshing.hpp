// Meshing of an arena's pages: the plan is in arena_mesh_plan.cpp, the moving in arena_mesh.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime_hooks/pool/arena.hpp"
#include "runtime_hooks/pool/mesh_plan.hpp"

namespace cuwarden::pool {

// One pass of meshing over the runs that are little used. A page of memory that several pages of
// addresses are to share is made when its first page is moved. Blocks are copied to it by way of an
// address of its own (scratch), and then the pages' addresses are mapped to it. A run never needs
// more new memory than it gives back, so a little room is enough. On a device without any room,
// some runs move into the memory of other runs that are a single page.
class Arena::Meshing {
 public:
  // Memory that a pass moves pages into: pages that it makes, or single-page runs of the arena.
  enum class Into : std::uint8_t { new_memory, own_memory };
  Meshing(Arena& arena, const driver::RealDriver& real, Into into) : arena_(arena), real_(real) {
    if (into == Into::new_memory) {
      find_moves();
      drop_useless();
    } else {
      find_moves_into_own();
    }
    reserve();
  }
  ~Meshing() { give_up_targets(); }
  Meshing(const Meshing&) = delete;
  Meshing& operator=(const Meshing&) = delete;

  // Returns the bytes that the pass saves if all of it is done.
  std::uint64_t gain() const noexcept {
    std::uint64_t held = 0;
    for (const Candidate& candidate : candidates_) held += arena_.run(candidate.run).bytes();
    return held - std::min(held, used_targets_ * page_bytes);
  }
  // Reserves the scratch addresses at which new memory is written. Returns false if the driver
  // refuses.
  bool take_scratch() noexcept {
    return scratch_bytes() == 0 ||
           real_.cuMemAddressReserve(&scratch_, scratch_bytes(), 0, 0, 0) == CUDA_SUCCESS;
  }
  // Moves candidates until `enough_bytes` are saved, the pauses are used up or a move fails.
  // Returns the bytes saved.
  std::uint64_t run(const Pause& pause, std::uint64_t enough_bytes, int& pauses_left) noexcept;
  // True if there was no memory for some candidate to move into.
  bool lacked_room() const noexcept { return lacked_room_; }

 private:
  // One page of addresses, the plan's item that it belongs to, and the target (index in targets_)
  // that it moves to.
  struct Move {
    std::uint64_t page = 0;
    std::uint32_t item = 0, target = 0;
  };
  // A run that may be moved, with its moves: `moves` entries of moves_ from `first_move` on. In an
  // ordinary run each page with blocks is an item of the plan. In a run whose pages share memory
  // all pages together are one item, so that it needs no more memory than it gives back.
  struct Candidate {
    RunIndex run = 0;
    std::uint32_t first_move = 0, moves = 0, items = 0;
  };
  // Result of one candidate: `no_room` means that memory for it could not be made, `failed` that
  // the driver refused a later step. Its blocks stay where they were in both cases.
  enum class Moved : std::uint8_t { all, no_room, failed };
  // A page of memory that pages move to.
  struct Target {
    // The memory's handle; 0 until make() has got it.
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr at = 0;  // The address at which the memory is mapped for copying.
    RunIndex run = 0;    // The arena's run that uses this memory; 0 while no page was moved to it.
  };
  // A single-page run of the arena that may become a target.
  struct Own {
    RunIndex run = 0;
    // The steps that its blocks take, planned moves included.
    PageSteps steps;
    // True if the run itself is to be moved away: then it is no target.
    bool has_moved = false;
    bool is_target = false;
  };

  PageSteps steps_of(std::uint64_t page) const;
  bool add_candidate(RunIndex, std::vector<PageSteps>& items);
  void find_moves();
  std::vector<Own> find_own() const;
  bool find_own_targets(const Candidate&, const std::vector<PageSteps>& items, std::vector<Own>&);
  void find_moves_into_own();
  void drop_useless();
  void reserve();
  bool make(Target&) noexcept;
  void drop(Target&) noexcept;
  void give_up_targets() noexcept;
  std::uint64_t scratch_bytes() const noexcept {
    return whole_addresses(new_targets_ * page_bytes);
  }
  bool is_own(const Target& target) const noexcept { return new_targets_ == 0 && target.run != 0; }
  bool is_alone(const Target& target) const noexcept {
    return is_own(target) && !arena_.run(target.run).is_shared;
  }
  // Calls visit(target) once for each of the candidate's targets that is an unshared run of the
  // arena.
  template <class Visit>
  void each_alone(const Candidate& candidate, const Visit& visit) noexcept {
    for (std::uint32_t i = 0; i < candidate.moves; ++i) {
      const std::uint32_t at = moves_[candidate.first_move + i].target;
      bool is_first = true;
      for (std::uint32_t j = 0; j < i && is_first; ++j)
        is_first = moves_[candidate.first_move + j].target != at;
      if (is_first && is_alone(targets_[at])) visit(targets_[at]);
    }
  }
  void share(const Target&) noexcept;
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
  // Targets whose memory is to be made, and those of them that the remaining candidates use.
  std::uint64_t new_targets_ = 0, used_targets_ = 0;
  CUdeviceptr scratch_ = 0;
  // True if the driver has refused memory since the last time that some was given back.
  bool is_full_ = false;
  bool lacked_room_ = false;
};

}  // namespace cuwarden::pool
