// What the program may do with a range of the pool, as with the driver's own memory.
#pragma once

#include "runtime_hooks/families/hooked_call.hpp"

namespace cuwarden::families {

// Whether a range of the pool begins there.
bool is_of_pool(HookedCall&, CUdeviceptr) noexcept;
// Whether the address lies in one.
bool is_in_pool(HookedCall&, CUdeviceptr) noexcept;

// As cuMemFree: waits for the device. During a stream capture nobody may; the memory goes later.
CUresult free_of_pool(HookedCall&, CUdeviceptr) noexcept;

}  // namespace cuwarden::families
