// The rungs in the order in which they are climbed.
#pragma once

#include "runtime_hooks/rescue/rung.hpp"

namespace cuwarden::rescue {

extern const Rung retry, synchronise, trim, give_back, mesh, reclaim, spill_at_once, wait, spill;

// From rungs that cost nothing to those that cost the program time, and then others theirs. The
// pool comes after pending frees: what it keeps is the program's own provision. Host memory is
// slow, but a request that waited in vain before need not wait again first.
inline constexpr const Rung* rungs_in_order[] = {&retry,   &synchronise,   &trim, &give_back, &mesh,
                                                 &reclaim, &spill_at_once, &wait, &spill};

}  // namespace cuwarden::rescue
