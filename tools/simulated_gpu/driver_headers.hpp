// cuda.h with every ABI of every function under its own name (no renaming macros).
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

// cuda.h ends by sending callers of this one to an inline function of its own.
#undef cuGetProcAddress_v2
