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

// The order in which rungs are tried: first those that cost nothing, then those that cost the
// program time or memory that it keeps for later. Spilling comes last, because host memory is slow.
inline constexpr const Rung* rungs_in_order[] = {&retry, &synchronise, &trim, &give_back,
                                                 &mesh,  &reclaim,     &wait, &spill};
// The order in which rungs are tried if a wait for other processes to free memory of the device was
// in vain shortly before.
inline constexpr const Rung* rungs_after_a_vain_wait[] = {&retry, &synchronise, &trim,  &give_back,
                                                          &mesh,  &reclaim,     &spill, &wait};

}  // namespace cuwarden::rescue
