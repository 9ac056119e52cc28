// Questions to the driver about a pointer or a stream, on behalf of a hooked call.
#pragma once

#include <cstdint>

#include "runtime_hooks/hooks/hooked_call.hpp"

namespace cuwarden::hooks {

// Bytes of the allocation that holds `pointer`, as requested; 0 where the driver does not say.
std::uint64_t extent_of(HookedCall&, CUdeviceptr pointer);

// Whether what the call puts into `stream` becomes a graph node. The driver is asked only where a
// capture was ever begun in the process; `query` is the variant that belongs to the
// call's default stream.
bool is_capturing(HookedCall&, CUstream stream,
                  CUresult(CUDAAPI* query)(CUstream, CUstreamCaptureStatus*));

}  // namespace cuwarden::hooks
