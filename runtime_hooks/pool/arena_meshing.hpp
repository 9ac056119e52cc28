// Meshing of an arena's pages, so that several pages of addresses share one page of memory. The
// plan is made in arena_mesh_candidates.cpp, and carried out in arena_mesh.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime_hooks/pool/arena.hpp"
#include "runtime_hooks/pool/page_pairing.hpp"

namespace cuwarden::pool {

// One pass of meshing: moves the blocks that lie in sparsely used pages, so that several pages of
// addresses share one page of memory (a target). A run is a group of pages whose memory is mapped
// together; runs are moved one after the other.
//
// If one of the pages that are to share memory is a run of one page, the memory of that page is the
// target. Otherwise the target is new memory, which is made when the first page is moved to it. To
// copy blocks into a target, it is mapped at a further address (scratch address); then the pages'
// own addresses are mapped to it. A run never needs more new memory than it gives back, so a little
// free memory is enough. On a device without free memory, only the memory of runs of one page can
// be a target.
class Arena::Meshing {
 public:
  // Memory that a pass of meshing moves pages into. `own_memory`: that of the arena's runs with a
  // single page, without any new memory. `new_memory`: the same, and memory that the pass
  // allocates.
  enum class Into : std::uint8_t { new_memory, own_memory };
  // Plans a pass of meshing, which run() carries out. `arena` and `real` outlive the object. The
  // caller holds the arena's lock until the object is destroyed. May throw std::bad_alloc.
  //
  // `verifies`: true if each copy is compared before the program's addresses get it.
  Meshing(Arena& arena, const driver::RealDriver& real, Into into, bool verifies)
      : arena_(arena), real_(real), verifies_(verifies) {
    if (into == Into::new_memory) {
      find_moves();
      drop_useless();
    } else {
      find_moves_into_own();
    }
    reserve();
  }
  // Frees the scratch addresses, at which new memory was mapped while blocks were copied to it.
  // Pages that were moved keep their new memory.
  ~Meshing() {
    release_old();
    give_up_targets();
  }
  Meshing(const Meshing&) = delete;
  Meshing& operator=(const Meshing&) = delete;

  // Returns the bytes of device memory that the pass of meshing saves if all planned runs can be
  // moved.
  std::uint64_t gain() const noexcept {
    std::uint64_t held = 0;
    for (const Candidate& candidate : candidates_) held += arena_.run(candidate.run).bytes();
    return held - std::min(held, used_targets_ * page_bytes);
  }
  // Reserves the scratch addresses at which new memory is mapped while blocks are copied to it. To
  // be called once, before run(). Returns false if the driver refuses; true also if the plan needs
  // none.
  bool take_scratch() noexcept {
    return scratch_bytes() == 0 ||
           real_.cuMemAddressReserve(&scratch_, scratch_bytes(), 0, 0, 0) == CUDA_SUCCESS;
  }
  // Moves the planned runs, in pauses of the program. Begins no further pause once `needed_bytes`
  // are saved, and ends at once when `enough_bytes` are. Ends, too, if no pause can be had, or if a
  // move fails for a reason other than lack of room. Returns the
  // bytes saved.
  std::uint64_t run(const Pause& pause, std::uint64_t needed_bytes,
                    std::uint64_t enough_bytes) noexcept;
  // Makes a copy on the device, in a pause of the program. For it, the driver takes the memory that
  // copies need, if the context has given that back. To be called before memory is made for moves.
  // Returns false if the copy has failed, or no pause could be had.
  bool have_copies_their_memory(const Pause&) noexcept;
  // True if run() could not move some run (pages whose memory is mapped together) for lack of free
  // device memory.
  bool lacked_room() const noexcept { return lacked_room_; }

 private:
  // The move of one page of addresses to other memory, that of a target.
  struct Move {
    // Index of the page in Arena::pages_: its number in the arena's range, from 0.
    std::uint64_t page = 0;
    // `item`: number of the item that the page belongs to: a page, or all pages that share memory
    // already. All pages of an item move to one target. Items are numbered from 0, over all runs
    // for Into::new_memory, and in each run for Into::own_memory.
    // `target`: index in `targets_` of the memory that the item's pages move to.
    std::uint32_t item = 0, target = 0;
  };
  // A run (pages whose memory is mapped together) that may be moved, as a whole. Each page with
  // blocks is an item of the plan. Pages that share memory already are one item together, so that
  // they need no more memory than they give back.
  struct Candidate {
    // Number of the run in the arena.
    RunIndex run = 0;
    // Index in `moves_` of the run's first move, the number of its moves, and the number of its
    // items (a page, or pages that share memory already).
    std::uint32_t first_move = 0, moves = 0, items = 0;
    // Number of items that move to new memory.
    std::uint32_t new_items = 0;
  };
  // Number of no item.
  static constexpr std::uint32_t no_item = UINT32_MAX;
  // A page of memory that one or several pages of addresses are moved to.
  struct Target {
    // The driver's handle of the memory. 0 while new memory is not allocated, or while the driver
    // was not asked for the handle of memory that the arena had already.
    CUmemGenericAllocationHandle handle = 0;
    // The address at which the memory is mapped while blocks are copied to it. New memory has a
    // scratch address here; 0 before the memory is allocated. Memory that the arena had already has
    // the address of a page that uses it.
    CUdeviceptr at = 0;
    // Number of the arena's run that uses this memory; 0 for new memory to which no page was moved.
    RunIndex run = 0;
    // Number of the item of which a page was copied whole to this memory; no_item: none was.
    std::uint32_t whole_item = no_item;
    // True for memory that the arena had before this pass of meshing.
    bool is_own = false;
  };
  // A single-page run of the arena that other pages may be moved to.
  struct Own {
    // Number of the run in the arena.
    RunIndex run = 0;
    // The steps (parts of 512 bytes) of the run's page that are taken: by the run's own blocks, and
    // by blocks of pages that the plan moves to the run.
    PageSteps steps;
    // True if the plan moves the run itself away. Then no page may be moved to it.
    bool has_moved = false;
    // True if the plan moves a page to the run. Then the run itself must not be moved.
    bool is_target = false;
  };

  // True if the run holds blocks, and has all its memory.
  static bool may_move(const Run& run) noexcept { return run.pages_in_use != 0 && !run.is_lost; }
  PageSteps steps_of(std::uint64_t page) const;
  bool add_candidate(RunIndex, std::vector<PageSteps>& items);
  void let_single_pages_stay();
  void find_moves();
  std::vector<Own> find_own() const;
  bool find_own_targets(const Candidate&, const std::vector<PageSteps>& items, std::vector<Own>&);
  void find_moves_into_own();
  void drop_useless();
  void reserve();
  bool make(Target&) noexcept;
  void drop(Target&) noexcept;
  void give_up_targets() noexcept;
  // Returns the bytes of the scratch addresses, at which new memory is mapped while blocks are
  // copied to it.
  std::uint64_t scratch_bytes() const noexcept {
    return new_targets_ == 0 ? 0 : whole_addresses(targets_.size() * page_bytes);
  }
  // True if the target is memory that the arena had before this pass of meshing, and a single page
  // of addresses uses it so far.
  bool is_alone(const Target& target) const noexcept {
    return target.is_own && !arena_.run(target.run).is_shared;
  }
  // Calls visit(target) once for each Target (physical memory) to which items of the candidate
  // move. Leaves out memory that the pool did not have before this pass of meshing, and memory that
  // several pages of addresses use already.
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
  // Calls visit(target) for each item of the candidate: with the index in `targets_` of the memory
  // that the item moves to.
  template <class Visit>
  void each_item(const Candidate& candidate, const Visit& visit) {
    for (std::uint32_t i = 0, last = no_item; i < candidate.moves; ++i) {
      const Move& move = moves_[candidate.first_move + i];
      if (move.item != last) visit(move.target);
      last = move.item;
    }
  }
  void share(const Target&) noexcept;
  bool copy(const Move&) noexcept;
  bool map(std::uint64_t page, std::uint64_t bytes, CUmemGenericAllocationHandle) noexcept;
  bool swap_memory(const Candidate&, Run&) noexcept;
  // Maps the targets' memory at the addresses of the candidate's pages, which have none. Returns
  // false, with nothing mapped, if the driver refuses.
  bool map_targets(const Candidate&) noexcept;
  // Skips candidates whose targets are not made and cannot be made, and notes in `lacked_room_`
  // that they lack room. Returns false if no candidate is left.
  bool has_next() noexcept;
  // Makes the targets of the next candidates, until moving these would save `bytes` or would move
  // 256 pages, or the driver refuses memory.
  void make_ahead(std::uint64_t bytes) noexcept;
  // Moves the next candidates together: starts all copies, then waits once for all. Takes no
  // further candidate once those taken save `bytes`, have 64 pages or 16,384 withheld parts, or the
  // driver refuses memory. To be called in a pause of the program, after has_next(). Returns false
  // if a call of the driver has failed, or host memory is lacking. The blocks that were not moved
  // then lie in their old memory, which may be lost (ArenaCounts::lost_bytes).
  bool move_batch(std::uint64_t bytes) noexcept;
  // Renounces the parts of pages that were announced to Packing for the candidate, which was not
  // moved. If the candidate's run is lost, they stay announced: its addresses are withheld.
  void give_up(const Candidate&) noexcept;
  // Returns the number of parts of pages that must be announced to Packing as withheld before the
  // page, or all pages of the candidate, are moved.
  std::uint32_t withheld_parts(const Move&) const noexcept;
  std::uint64_t withheld_parts(const Candidate&) const noexcept;
  // Maps the targets' memory at the addresses of the candidate's pages, whose blocks were copied to
  // it. Returns false if the driver refuses; the pages then have their old memory again, unless it
  // is lost (ArenaCounts::lost_bytes).
  bool exchange(const Candidate&) noexcept;
  // Finds out, in a pause of the program, if two addresses of one page show the same contents on
  // this device and driver. Looks at the memory of the first candidate's run, and writes to a part
  // that no block has. Returns true if they do, now or by an earlier call for the arena. Returns
  // false if they differ (ArenaCounts::differing_bytes), or if that could not be found out.
  bool is_coherent() noexcept;
  // Returns the start and the end of a part of the page, such as between two blocks, that no block
  // has. Both are equal if there is none.
  std::pair<std::uint64_t, std::uint64_t> free_part(std::uint64_t page) const noexcept;
  // Compares the copies of the candidate's blocks with the blocks. Returns false if one differs
  // (ArenaCounts::differing_bytes), or if that could not be found out.
  bool is_copied_right(const Candidate&) noexcept;
  // Gives back the new memory to which no page was moved.
  void drop_spare() noexcept;
  // Releases the memory that moved runs had before.
  void release_old() noexcept;
  void undo(Run&, std::uint64_t unmapped_pages, CUmemGenericAllocationHandle) noexcept;
  void join(const Move&) noexcept;
  // Withholds the free addresses of each page in `joined_`. In the page's host page, withholds the
  // offsets that the page's blocks take. To be called after each pause.
  void withhold_joined() noexcept;
  bool make_targets(const Candidate&) noexcept;

  Arena& arena_;
  const driver::RealDriver& real_;
  const bool verifies_;
  // Moves (each of one page to other memory) of all runs in `candidates_`. The moves of one run lie
  // next to each other.
  std::vector<Move> moves_;
  std::vector<Candidate> candidates_;
  std::vector<Target> targets_;
  // Targets are pages of memory to which this plan moves pages of the arena. `new_targets_`: number
  // of those for which memory must be allocated; 0 if all are memory that the arena has already.
  // `used_targets_`: number of these new ones that the moves of the runs in `candidates_` need.
  std::uint64_t new_targets_ = 0, used_targets_ = 0;
  // Start of the reserved addresses at which new memory is mapped while blocks are copied to it; 0
  // if there are none.
  CUdeviceptr scratch_ = 0;
  // True if the driver has refused device memory, and no run was moved since, which would have
  // given some back.
  bool is_full_ = false;
  // True if a run could not be moved for lack of free device memory.
  bool lacked_room_ = false;
  // Bytes of new memory to which no page was moved yet.
  std::uint64_t spare_bytes_ = 0;
  // Index in `candidates_` of the next candidate to be moved.
  std::size_t next_ = 0;
  // Indices in Arena::pages_ of the pages that were moved in the last pause and are not the host
  // page of their new run. withhold_joined() empties the list.
  std::vector<std::uint64_t> joined_;
  // Handles of memory that moved runs had before. They are released after the pause, or as soon as
  // the driver refuses new memory.
  std::vector<CUmemGenericAllocationHandle> old_;
};

}  // namespace cuwarden::pool
