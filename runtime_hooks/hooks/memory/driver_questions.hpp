// Questions to the driver about a pointer or a stream, on behalf of a hooked call.
#pragma once

#include <cstdint>

#include "runtime_hooks/hooks/call/hooked_call.hpp"

namespace cuwarden::hooks {

// Returns the size in bytes of the allocation that holds the address `pointer`, as the driver
// reports it; 0 if the driver does not say. `HookedCall`: the call on whose behalf the driver is
// asked.
std::uint64_t extent_of(HookedCall&, CUdeviceptr pointer);

// Returns true if `stream` is being captured, so that the program's call becomes a node of a graph.
// An invalidated capture counts until it is ended. Returns false, without asking the driver, if no
// capture was ever begun in the process or the call is not recorded. `query` is the driver's
// cuStreamIsCapturing, in the variant (legacy or per thread) in which the program's call names its
// default stream. Returns false, too, if `query` is null (the driver has none) or fails.
bool is_capturing(HookedCall&, CUstream stream,
                  CUresult(CUDAAPI* query)(CUstream, CUstreamCaptureStatus*));

}  // namespace cuwarden::hooks
