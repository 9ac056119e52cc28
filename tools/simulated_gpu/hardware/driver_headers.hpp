// Includes cuda.h so that each version of a function has its own name, such as cuMemAlloc and
// cuMemAlloc_v2. By default, macros of cuda.h rename cuMemAlloc to the newest version.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

// A macro at the end of cuda.h replaces cuGetProcAddress_v2 by an inline function; the real one is
// needed.
#undef cuGetProcAddress_v2
