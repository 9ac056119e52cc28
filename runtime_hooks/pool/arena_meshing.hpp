// How an arena's pages come to share memory: the plan (arena_mesh_plan.cpp), and the moving
// (arena_mesh.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime_hooks/pool/arena.hpp"
#include "runtime_hooks/pool/mesh_plan.hpp"

namespace cuwarden::pool {

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

}  // namespace cuwarden::pool
