// The rungs, in the order in which they are tried.
#pragma once

#include "runtime_hooks/rescue/rungs/rung.hpp"

namespace cuwarden::rescue {

// The rungs. `retry` asks the driver again. `synchronise` waits for stream-ordered frees. `trim`
// has CUDA's memory pools and graphs give back unused memory. `give_back` gives back unused memory
// of cuwarden's pool. `mesh` compacts that pool. `reclaim` calls the program's functions that empty
// caches. `wait` waits for other processes to free memory. `spill` serves the request with host
// memory.
extern const Rung retry, synchronise, trim, give_back, mesh, reclaim, wait, spill;

// A position in the order of rungs. The wait rung has two positions, of which each rescue uses one.
struct Turn {
  const Rung& rung;  // the rung that is tried
  // True if the rung is tried here, unless a wait for other processes to free memory of the device
  // was in vain shortly before the rescue.
  bool is_due_usually = true;
  // True if the rung is tried here after such a wait in vain.
  bool is_due_after_a_vain_wait = true;

  // Returns true if the rung is tried here. `wait_was_vain`: true if a wait for other processes was
  // in vain shortly before.
  constexpr bool is_due(bool wait_was_vain) const noexcept {
    return wait_was_vain ? is_due_after_a_vain_wait : is_due_usually;
  }
};

// The order in which rungs are tried: first those that cost nothing, then those that cost the
// program time or memory that it keeps for later. Spilling comes last, because host memory is slow.
// After a wait in vain, spilling comes before another wait.
inline constexpr Turn rungs_in_order[] = {
    {retry},
    {synchronise},
    {trim},
    {give_back},
    {mesh},
    {reclaim},
    {.rung = wait, .is_due_after_a_vain_wait = false},
    {spill},
    {.rung = wait, .is_due_usually = false},
};

}  // namespace cuwarden::rescue
