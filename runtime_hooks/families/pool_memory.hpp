// What the program may do with a range of the pool, as with the driver's own memory.
#pragma once

#include "runtime_hooks/families/hooked_call.hpp"

namespace cuwarden::families {

// Whether a range of the pool begins there.
bool is_of_pool(HookedCall&, CUdeviceptr) noexcept;

// As cuMemFree: waits for the device. During a stream capture nobody may; the memory goes later.
CUresult free_of_pool(HookedCall&, CUdeviceptr);

// A capture has ended: what was freed meanwhile goes, unless there is another one.
void free_deferred(HookedCall&);

}  // namespace cuwarden::families
