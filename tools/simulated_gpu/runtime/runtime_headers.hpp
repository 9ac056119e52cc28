// Includes cuda.h and cuda_runtime_api.h so that each version of a function has its own name.
#pragma once

#include "tools/simulated_gpu/hardware/driver_headers.hpp"
// The runtime's header must come after, so that it sees the same __CUDA_API_VERSION_INTERNAL.
#include <cuda_runtime_api.h>
