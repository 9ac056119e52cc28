// How an arena's pages come to share memory: the plan (arena_mesh_plan.cpp), and the moving
// (arena_mesh.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime_hooks/pool/arena.hpp"
#include "runtime_hooks/pool/mesh_plan.hpp"

namespace cuwarden::pool {

// One pass over the runs that are little used. Memory that several pages are to share is made when
// the first of them comes, at an address of its own, to which what lies in them is copied; then
// their addresses get it. A run makes no more of it than it gives back: a little room is enough.
// Where the device has none, some runs move into the memory of others that are a single page.
class Arena::Meshing {
 public:
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

  // If all of it is done.
  std::uint64_t gain() const noexcept {
    std::uint64_t held = 0;
    for (const Candidate& candidate : candidates_) held += arena_.run(candidate.run).bytes();
    return held - std::min(held, used_targets_ * page_bytes);
  }
  bool take_scratch() noexcept {
    return scratch_bytes() == 0 ||
           real_.cuMemAddressReserve(&scratch_, scratch_bytes(), 0, 0, 0) == CUDA_SUCCESS;
  }
  // Until it is enough, or something fails. What was gained.
  std::uint64_t run(const Pause& pause, std::uint64_t enough_bytes, int& pauses_left) noexcept;
  // For memory to move into.
  bool lacked_room() const noexcept { return lacked_room_; }

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
    CUdeviceptr at = 0;  // where it is mapped
    RunIndex run = 0;    // that it is, or has become
  };
  // A run that may become a target.
  struct Own {
    RunIndex run = 0;
    PageSteps steps;
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
  // Of the candidate's targets, those that nobody shares yet.
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
  std::uint64_t new_targets_ = 0, used_targets_ = 0;  // of memory that is made
  CUdeviceptr scratch_ = 0;
  bool is_full_ = false;  // the device, since something was given back
  bool lacked_room_ = false;
};

}  // namespace cuwarden::pool
