// The rungs (attempts to serve a refused request) in the order in which they are tried.
#pragma once

#include "runtime_hooks/rescue/rung.hpp"

namespace cuwarden::rescue {

// The rungs. `retry` asks the driver again; `synchronise` waits for stream-ordered frees; `trim`
// empties the driver's memory pools and those of graphs; `give_back` gives back unused memory of
// cuwarden's pool. `mesh` compacts that pool; `reclaim` calls the program's functions that empty
// caches; `wait` waits for other processes; `spill` serves with host memory. `spill_at_once` is
// `spill` before the wait; it runs if an earlier wait for other processes to free memory of the
// device was in vain shortly before.
extern const Rung retry, synchronise, trim, give_back, mesh, reclaim, spill_at_once, wait, spill;

// The order in which rungs are tried: first those that cost nothing, then those that cost the
// program time or memory that it keeps for later. Spilling comes late, because host memory is slow.
inline constexpr const Rung* rungs_in_order[] = {&retry,   &synchronise,   &trim, &give_back, &mesh,
                                                 &reclaim, &spill_at_once, &wait, &spill};

}  // namespace cuwarden::rescue
