// Meshing of an arena's pages, so that several pages of addresses share one page of memory. The
// plan is made in candidates.cpp, and carried out in moves.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime_hooks/pool/arena.hpp"
#include "runtime_hooks/pool/meshing/page_pairing.hpp"

namespace cuwarden::pool {

// One pass of meshing: moves the blocks that lie in sparsely used pages, so that several pages of
// addresses share one page of memory (a target). A run is a group of pages whose memory is mapped
// together; runs are moved one after the other.
//
// A pass has a span: the number of neighbouring pages that move together, and that a target has. A
// call of the driver takes as long for several pages that are mapped in one piece as for one. So
// four neighbours move together first, if enough of them fit with four others.
//
// If one of the runs that are to share memory has as many pages of memory as the span, its memory
// is the target. Otherwise the target is new memory. Moved in the order of the plan, no run needs
// more new memory than it gives back, so a little free memory is enough. A device without free
// memory has some once a run was evicted to host memory (eviction.hpp). Without an eviction, only
// memory of runs with as many pages as the span can be a target on such a device.
//
// A run for which no new memory is made is copied before its addresses change: its blocks are
// copied from its own addresses to those of the targets. Then its addresses are mapped to the
// targets.
//
// A run that needs new memory is exchanged before it is copied. Its old memory is mapped a second
// time, at scratch addresses. Then its own addresses are mapped to the targets. At last its blocks
// are copied from the scratch addresses. A scratch address for each run costs less than one for
// each target would.
class Arena::Meshing {
 public:
  // The kind of plan for a pass of meshing: the memory that pages are to move to.
  enum class Plan : std::uint8_t {
    // Neighbours, most_span of them, move together: into new memory, and into the memory of those
    // runs of the arena that have as many pages. Moves runs of most_span pages, or of a multiple.
    neighbours,
    // Pages move into new memory, and into the memory of those runs of the arena that have one page
    // of memory.
    into_new_memory,
    // Pages move into the memory of those runs of the arena that have one page of memory. No new
    // memory is made.
    into_own_memory,
    // Moves that an earlier pass has left over, without those that have become impossible. No move
    // is planned if blocks take a 64th less than then, since a new plan saves more. Planning
    // empties Arena::left_over_. No page is looked at anew.
    left_over,
  };
  // Plans a pass of meshing, which run() carries out. `arena` and `real` outlive the object. The
  // caller holds the arena's lock until the object is destroyed. May throw std::bad_alloc.
  //
  // `verifies`: true if each copy is compared with its original in the pause.
  Meshing(Arena& arena, const driver::RealDriver& real, Plan plan, bool verifies);
  // Frees the scratch addresses, and releases the old memory of runs and new memory without pages.
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
    return held - std::min(held, used_targets_ * target_bytes());
  }
  // Reserves the scratch addresses at which the old memory of runs is mapped while their blocks are
  // copied. To be called once, before run(). Returns false if the driver refuses; true also if the
  // plan needs none.
  bool take_scratch() noexcept;
  // Moves the planned runs (pages whose memory is mapped together). Pauses the program by `pause`
  // for the moves, several times if need be. Begins no further pause once `needed_bytes` of device
  // memory are saved. Within a pause, begins no further batch of moves once `enough_bytes` are
  // saved. Skips runs that the driver has no room for. Ends, too, if no pause can be had, if a move
  // fails for another reason, or if a test shows that pages cannot share memory. Returns the bytes
  // saved.
  //
  // `prepares_memory`: true if new memory is made for many runs before the first pause, as far as
  // there is room; false if for the next run only, as before each later pause.
  std::uint64_t run(Pause& pause, std::uint64_t needed_bytes, std::uint64_t enough_bytes,
                    bool prepares_memory) noexcept;
  // Tests, with the first planned run, if pages may share memory on this device and driver
  // (is_coherent()). Returns false, too, if no run is planned. To be called before run(), while the
  // caller pauses the program.
  bool may_share() noexcept { return next_ != candidates_.size() && is_coherent(); }
  // Makes a small copy on the device, so that the driver takes the memory that it needs for copies.
  // Pauses the program by `Pause` for the copy. To be called before memory is made for moves.
  // Returns false if the copy has failed, or no pause could be had. The copy needs 1,024 bytes
  // without blocks in the first page of a planned run that shares no memory. Returns true without a
  // copy if there is no such run.
  bool have_copies_their_memory(Pause&) noexcept;
  // True if run() has skipped a run (pages whose memory is mapped together), because it could not
  // be prepared. The usual reason is a lack of free device memory.
  bool lacked_room() const noexcept { return lacked_room_; }
  // True if run() has ended because no pause could be had, because a move has failed for a reason
  // other than lack of room, or because pages cannot share memory.
  bool was_stopped() const noexcept { return was_stopped_; }
  // Stores the moves that were not made in Arena::left_over_, for a later pass, in place of those
  // there. These are all moves if run() was not called. Stores none if run() has failed for a
  // reason other than lack of room or lack of a pause. Stores none, too, if host memory is lacking.
  void keep_rest() noexcept;

 private:
  // The move of `span_` pages of addresses to other memory. `target` is the index of that memory in
  // `targets_`.
  using Move = LeftOver::Move;
  // The memory that a run has before it is moved.
  struct OldMemory {
    // The driver's handle of the memory; 0 if there is none.
    CUmemGenericAllocationHandle handle = 0;
    // The scratch address at which the memory is mapped a second time; 0 if it is not.
    CUdeviceptr at = 0;
    // Bytes of the run's old memory that are mapped at the scratch address `at`; 0 if `at` is 0.
    std::uint64_t bytes = 0;
  };
  // A run (pages whose memory is mapped together) that may be moved, as a whole. Each `span_` of
  // its pages are an item of the plan, if they hold blocks. Pages that share memory already are one
  // item together, unless the plan has them part (add_in_parts()).
  struct Candidate {
    // Number of the candidate's run: its index in Arena::runs_, plus 1.
    RunIndex run = 0;
    std::uint32_t first_move = 0;   // index in `moves_` of the run's first move
    std::uint32_t moves = 0;        // number of the run's moves
    std::uint32_t items = 0;        // number of the run's items
    std::uint32_t new_targets = 0;  // number of targets of new memory that its items move to
    // True while the run's addresses are mapped to the memory that it moves to, and the move is not
    // complete.
    bool is_exchanged = false;
    // True if the run's addresses have no memory, because the targets' memory was unmapped there
    // again and the old memory was not mapped yet.
    bool is_unmapped = false;
    // True once the run has moved: its blocks were copied, and the move is entered.
    bool is_complete = false;
    // The memory that the run has before the move. Its handle is 0 until the move is prepared, and
    // after the move.
    OldMemory old{};

    // True if the memory behind the run's addresses is exchanged before the run's blocks are
    // copied. False if the blocks are copied first.
    bool exchanges_first() const noexcept { return new_targets != 0; }
  };
  // Value of an item's number (LeftOver::Move::item) that stands for no item.
  static constexpr std::uint32_t no_item = UINT32_MAX;
  // Memory of `span_` pages that pages of addresses are moved to.
  struct Target {
    // The driver's handle of the memory. 0 for new memory that is not allocated yet, and for memory
    // of the arena for whose handle the driver was not asked yet.
    CUmemGenericAllocationHandle handle = 0;
    // The address of the first of the pages that use the memory, if the arena had the memory before
    // this pass of meshing; 0 for new memory.
    CUdeviceptr at = 0;
    // Number of the arena's run that uses the target's memory, from 1. 0 for new memory to which no
    // page was moved.
    RunIndex run = 0;
    // Number of the item (LeftOver::Move::item) of which a page was copied whole to this target;
    // no_item: no page was.
    std::uint32_t whole_item = no_item;
    // True for memory that the arena had before this pass of meshing.
    bool is_own = false;
  };
  // A run of the arena that has one page of memory, and to which pages of other runs may be moved.
  struct Own {
    // Number of the run: its index in Arena::runs_, plus 1.
    RunIndex run = 0;
    // The steps (parts of 512 bytes) of the run's page that are taken: by the run's own blocks, and
    // by blocks of pages that the plan moves to the run.
    PageSteps steps;
    // True if the plan moves this run away. Then no page may be moved to it.
    bool has_moved = false;
    // True if the plan moves a page of another run to this run. Then this run must not be moved.
    bool is_target = false;
  };

  // Returns the bytes of a target's memory.
  std::uint64_t target_bytes() const noexcept { return span_ * page_bytes; }
  // True if the run (pages whose memory is mapped together) can be moved: it holds blocks, none of
  // its pages has lost its memory, and class Eviction has not chosen it.
  bool may_move(RunIndex index) const noexcept {
    const Run& run = arena_.run(index);
    return run.pages_in_use != 0 && !run.is_lost && index != arena_.evicted_.run;
  }
  std::uint32_t take_steps(std::uint64_t page, PageSteps&) const;
  bool has_blocks(std::uint64_t page) const noexcept;
  bool add_candidate(RunIndex, std::vector<PageSteps>& pages, bool splits, std::size_t first_item);
  std::size_t add_in_parts(RunIndex, MeshPlan&, std::size_t first_item);
  void let_targets_stay();
  void find_moves();
  std::vector<Own> find_own() const;
  bool find_own_targets(const Candidate&, const std::vector<PageSteps>& items, std::vector<Own>&);
  void find_moves_into_own();
  void find_left_over();
  void add_left_over(const LeftOver&, const LeftOver::OfRun&, const std::vector<bool>& fails);
  void count_new_targets();
  void drop_useless();
  void reserve();
  bool make(Target&) noexcept;
  bool make_targets(const Candidate&) noexcept;
  void drop(Target&) noexcept;
  void give_up_targets() noexcept;
  // False if take_old() would fail at once, without asking the driver.
  bool may_take_old(const Candidate&) const noexcept;
  // Retains the handle of the memory that the candidate has. Maps that memory at scratch addresses,
  // too, if it is exchanged before the copies. Returns false, with nothing retained or mapped, if
  // the driver refuses or no scratch addresses are left. Returns true at once if this was done
  // before.
  bool take_old(Candidate&) noexcept;
  // Unmaps the memory from its scratch addresses and releases its handle. Does nothing if there is
  // no handle.
  void let_go(OldMemory&) noexcept;
  // Unmaps and releases the memory that take_old() has taken for candidates (runs that may be
  // moved) that were not moved yet.
  void let_go_of_waiting() noexcept;
  // Makes the candidate ready to be moved, by make_targets() and take_old(). Returns false if one
  // of them fails; targets that were made stay for later candidates.
  bool prepare(Candidate& candidate) noexcept {
    return may_take_old(candidate) && make_targets(candidate) && take_old(candidate);
  }
  // True if the target is memory that the arena had before this pass of meshing, and that no pages
  // of addresses share so far.
  bool is_alone(const Target& target) const noexcept {
    return target.is_own && !arena_.run(target.run).is_shared;
  }
  // Calls visit(target) once for each Target (physical memory) to which pages of the candidate
  // move.
  template <class Visit>
  void each_target(const Candidate& candidate, const Visit& visit) noexcept {
    for (std::uint32_t i = 0; i < candidate.moves; ++i) {
      const std::uint32_t at = moves_[candidate.first_move + i].target;
      bool is_first = true;
      for (std::uint32_t j = 0; j < i && is_first; ++j)
        is_first = moves_[candidate.first_move + j].target != at;
      if (is_first) visit(targets_[at]);
    }
  }
  // Calls visit(target) for each item of the candidate. An item is a page with blocks, or all pages
  // that share memory already. `target`: index in `targets_` of the memory that the item moves to.
  template <class Visit>
  void each_item(const Candidate& candidate, const Visit& visit) {
    for (std::uint32_t i = 0, last = no_item; i < candidate.moves; ++i) {
      const Move& move = moves_[candidate.first_move + i];
      if (move.item != last) visit(move.target);
      last = move.item;
    }
  }
  void share(const Target&) noexcept;
  // Appends the copies of the candidate's blocks to `parts_`.
  void list_copies(const Candidate&) noexcept;
  void list_copies(const Candidate&, const Move&) noexcept;
  // Starts copies of `parts_` that were not started yet. `all`: true for all of them; false for as
  // many as fill whole launches of the copy kernel (all, if there is no kernel). Returns false if a
  // copy could not be started.
  bool start_listed(bool all) noexcept;
  // Return the address from which the blocks of a page are copied, and the address to which. A
  // block that begins N bytes after the page's start lies N bytes after these addresses. `Move` is
  // one of the candidate's.
  CUdeviceptr copied_from(const Candidate&, const Move&) const noexcept;
  CUdeviceptr copied_to(const Candidate&, const Move&) const noexcept;
  // Maps the targets' memory at the addresses of the candidate's pages, which have none. Returns
  // false, with nothing mapped, if the driver refuses.
  bool map_targets(const Candidate&) noexcept;
  // Unmaps the candidate's run and maps the targets' memory at the addresses of its pages. Returns
  // false if the driver refuses; the pages then have their old memory again, unless it is lost
  // (ArenaCounts::lost_bytes).
  bool exchange(Candidate&) noexcept;
  // Unmaps the targets' memory from the addresses of a candidate that exchange() has exchanged. The
  // pages then have no memory until give_up().
  void unmap_targets(Candidate&) noexcept;
  // Undoes the moves of those candidates of a batch that are not complete: their pages get their
  // old memory back. Before that, gives back new memory without pages and the old memory of pages
  // that were moved, because the driver may need memory for its own tables.
  void give_up_incomplete(std::span<Candidate> batch) noexcept;
  // Enters the move of a candidate that was exchanged and copied. Calls no function of the driver.
  void commit(Candidate&) noexcept;
  // Finds the next candidate (a run that may be moved) that prepare() makes ready. Skips candidates
  // for which prepare() fails, and sets `lacked_room_` then. Returns false if no candidate is left.
  bool has_next() noexcept;
  // Prepares the next candidates (runs that may be moved) before a pause, so that the pause is
  // short. Stops once moving them would save `bytes` or would move 1,536 pages, or when take_old()
  // fails; after one candidate until is_coherent() has succeeded. `makes_targets`: true to make new
  // memory, too, for the first 512 pages and while there is room; false if all is made later.
  void prepare_ahead(std::uint64_t bytes, bool makes_targets) noexcept;
  // Moves the next candidates (runs that may be moved) together: starts all copies, then waits once
  // for all. Takes no further candidate once those taken save `bytes`, have 64 pages or 16,384
  // withheld parts, or the driver refuses. To be called after has_next(), while the caller pauses
  // the program. Returns false if a call of the driver has failed, a copy differs from its
  // original, or host memory is lacking. The blocks that were not moved then lie in their old
  // memory, which may be lost (ArenaCounts::lost_bytes).
  bool move_batch(std::uint64_t bytes) noexcept;
  // Takes the next candidates (runs that may be moved) as a batch: prepares them, and advances
  // `next_`. Stops at the limits of move_batch(). Returns false, with no candidate taken, if host
  // memory is lacking.
  bool take_batch(std::uint64_t bytes) noexcept;
  // Copies the blocks of a batch of candidates (runs that may be moved). The batch lies in
  // `candidates_`, from the index `first` up to, but not including, `next_`. Exchanges those
  // candidates that are exchanged first, until one fails. Returns true once all copies are made,
  // false if one has failed.
  bool copy_batch(std::size_t first) noexcept;
  // Completes the move of a candidate whose blocks were copied. Returns false if the driver
  // refuses, or if the copies are to be compared and one differs.
  bool complete(Candidate&) noexcept;
  // Undoes what was begun for a candidate that was not moved: maps its old memory at its addresses,
  // if these have none, and renounces the parts that were announced to Packing. If the candidate's
  // run is lost, the parts stay announced, because its addresses are withheld.
  void give_up(Candidate&) noexcept;
  // Returns the number of parts of pages that must be announced to Packing as withheld before a
  // move. `Candidate` stands for the moves of all pages of its run.
  std::uint32_t withheld_parts(const Move&) const noexcept;
  // Returns the number of parts that are withheld for a moved page: one for its free addresses, and
  // one in the host for the offsets of each of its blocks.
  static std::uint32_t withheld_parts(const Page& page) noexcept { return 1 + page.blocks; }
  std::uint64_t withheld_parts(const Candidate&) const noexcept;
  // Tests if pages may share memory on this device and driver. They may if memory that is mapped at
  // two addresses shows the same contents at both, and if the second mapping takes no memory of the
  // device. To be called after has_next(), while the caller pauses the program. Maps the memory of
  // the next candidate (a run that may be moved) a second time, and writes only to a part of it
  // that no block has. Returns true if the test succeeds, or has succeeded before for the arena.
  // Returns false if the contents differ (ArenaCounts::differing_bytes is set then), if the second
  // mapping takes memory, or if the test cannot be made.
  bool is_coherent() noexcept;
  // Returns the addresses at which a part of the page without blocks begins and ends. Both are
  // equal if blocks take the whole page. `page`: the page's index in Arena::pages_.
  std::pair<std::uint64_t, std::uint64_t> free_part(std::uint64_t page) const noexcept;
  // Compares the copies of the candidate's blocks with the originals. Returns false if one differs
  // (ArenaCounts::differing_bytes), or if that could not be found out.
  bool is_copied_right(const Candidate&) noexcept;
  // Gives back to the driver the new memory to which no page was moved.
  void drop_spare() noexcept;
  // Gives back to the driver the memory in `old_`.
  void release_old() noexcept;
  void undo(Run&, std::uint64_t unmapped_members, CUmemGenericAllocationHandle) noexcept;
  void join(const Move&) noexcept;
  // Withholds the free addresses of each member in `joined_`. Also withholds the offsets of the
  // member's blocks in the member of its run that takes new blocks (Run::host). To be called after
  // each pause.
  void withhold_joined() noexcept;

  Arena& arena_;
  const driver::RealDriver& real_;
  const bool verifies_;
  // True if the arena's kernel copies blocks; false if the driver's functions for copies do.
  const bool has_kernel_;
  // Number of pages that each move moves, and that each target has.
  std::uint32_t span_ = 1;
  // Moves (each of `span_` pages to other memory) of all runs in `candidates_`. The moves of one
  // run lie next to each other.
  std::vector<Move> moves_;
  std::vector<Candidate> candidates_;
  std::vector<Target> targets_;
  // Number of the targets (memory of `span_` pages that pages of the arena move to) for which the
  // moves of the runs in `candidates_` need new memory.
  std::uint64_t used_targets_ = 0;
  // Start of the scratch addresses, at which the old memory of runs is mapped while their blocks
  // are copied; 0 if there are none.
  CUdeviceptr scratch_ = 0;
  // Bytes of the scratch addresses that are reserved, and bytes from their start that were handed
  // out. Addresses that were handed out are used again only when none of them is in use.
  std::uint64_t scratch_bytes_ = 0, used_scratch_bytes_ = 0;
  // True if the driver has refused to unmap a scratch address. Then the scratch addresses are never
  // freed, and none is used twice.
  bool is_scratch_stuck_ = false;
  // `is_full_`: true if the driver has refused to make memory. `maps_no_more_`: true if it has
  // refused to map memory at scratch addresses, which takes memory for its own tables. Both are
  // false again once a run was moved, because that gives memory back.
  bool is_full_ = false, maps_no_more_ = false;
  // True if a run was skipped because it could not be prepared (lacked_room()).
  bool lacked_room_ = false;
  // Bytes that blocks of the arena took (Packing::taken_bytes()) when the moves were planned.
  std::uint64_t planned_beside_bytes_ = 0;
  // `was_stopped_`: true if run() has ended because no pause could be had or a move has failed.
  // `has_failed_`: true only if a move has failed.
  bool was_stopped_ = false, has_failed_ = false;
  // Bytes of new memory to which no page was moved yet.
  std::uint64_t spare_bytes_ = 0;
  // Index in `candidates_` of the next candidate to be moved.
  std::size_t next_ = 0;
  // Indices in Arena::pages_ of the first pages of the members that were moved in the last pause.
  // Members that take their new run's new blocks (Run::host) are left out. withhold_joined()
  // empties the list.
  std::vector<std::uint64_t> joined_;
  // Memory that moved runs had before, and memory of runs that were skipped. It is given back to
  // the driver after the pause, or as soon as the driver refuses new memory.
  std::vector<OldMemory> old_;
  // Copies of the batch of candidates that is being moved, and the number of those that were
  // started.
  std::vector<CopyPart> parts_;
  std::size_t started_ = 0;
};

}  // namespace cuwarden::pool
