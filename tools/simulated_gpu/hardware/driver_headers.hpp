// Includes cuda.h with every ABI of every function under its own name (no renaming macros).
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

// cuda.h ends with a macro that replaces this function by an inline one.
#undef cuGetProcAddress_v2
