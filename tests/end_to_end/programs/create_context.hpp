// Makes contexts, with the headers of any version of CUDA.
#pragma once

#include <cuda.h>

namespace cuwarden::test {

// Makes a context of the device and makes it current. Sets `context` to it, and returns the
// driver's result.
inline CUresult create_context(CUcontext* context, CUdevice device) {
#if CUDA_VERSION >= 13000
  return cuCtxCreate(context, nullptr, 0, device);
#else
  return cuCtxCreate(context, 0, device);
#endif
}

}  // namespace cuwarden::test
