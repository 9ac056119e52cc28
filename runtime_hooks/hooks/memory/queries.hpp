// Questions to the driver about a pointer or a stream, on behalf of a hooked call.
#pragma once

#include <cstdint>

#include "runtime_hooks/hooks/call/hooked_call.hpp"

namespace cuwarden::hooks {

// Returns the requested bytes of the allocation that holds `pointer`; 0 if the driver does not say.
std::uint64_t extent_of(HookedCall&, CUdeviceptr pointer);

// Returns true if the call becomes a graph node, because `stream` is being captured. The driver is
// asked only if a capture was ever begun in the process. `query` is the variant of
// cuStreamIsCapturing for the call's default stream (legacy or per thread).
bool is_capturing(HookedCall&, CUstream stream,
                  CUresult(CUDAAPI* query)(CUstream, CUstreamCaptureStatus*));

}  // namespace cuwarden::hooks
