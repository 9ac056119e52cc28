// Refuses calls for reasons that hold for every function: the end of the process, a forked child, a
// requested failure, a missing cuInit.
#include "tools/simulated_gpu/driver/entry_guard.hpp"

namespace cuwarden::simulated_gpu {
namespace {

bool works_without_init(std::string_view name) {
  return name == "cuInit" || name == "cuDriverGetVersion" || name.starts_with("cuGetProcAddress") ||
         name == "cuGetErrorString" || name == "cuGetErrorName" || name == "cuGetExportTable";
}

}  // namespace

CUresult EntryGuard::refuse(CallSite& site) {
  if (deinitialised()) return CUDA_ERROR_DEINITIALIZED;
  // Functions that need no device work without one, too.
  const bool needs_device = !works_without_init(site.name);
  const CUresult failure = requested_failure(site, needs_device);
  if (failure != CUDA_SUCCESS) return failure;
  const bool ready = simulator().initialised && !forked_child();
  if (!ready && needs_device) return CUDA_ERROR_NOT_INITIALIZED;
  return CUDA_SUCCESS;
}

}  // namespace cuwarden::simulated_gpu
