// CUDA's declarations with every version of a function under its own name (no macros that turn
// cuMemAlloc into cuMemAlloc_v2).
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <cuda_runtime_api.h>
