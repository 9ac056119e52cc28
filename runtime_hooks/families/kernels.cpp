// Questions about kernels, and what is set of them: with lazy loading, the first of these brings a
// kernel's code to the device. NCCL asks about each of its kernels before it launches any.
#include "runtime_hooks/families/bodies.hpp"
#include "runtime_hooks/families/launched_kernels.hpp"

namespace cuwarden::families {
namespace {

template <class Call>
CUresult maybe_loading(HookedCall& call, Call real_call) {
  ImplicitSpan span(call);
  if (call.recorder().implicit().may_read(call.recorder().ledger().recently_ns()))
    span.begin(call.recorder().place().device);
  const CUresult result = real_call();
  const auto taken = span.taken();
  if (taken && *taken != 0) span.book({.module_bytes = *taken});
  note_refusal(call, result, ledger::Asked::module);
  return result;
}

template <class Handle, class Call>
CUresult of_kernel(HookedCall& call, Handle handle, Call real_call) {
  const auto kernel = reinterpret_cast<CUfunction>(handle);
  if (!call.recording() || loaded_kernels.has(kernel) || launched_kernels.has(kernel))
    return real_call();
  const CUresult result = maybe_loading(call, real_call);
  if (result == CUDA_SUCCESS) loaded_kernels.add(kernel);
  return result;
}

}  // namespace

CUresult cuModuleGetFunction(HookedCall& call, CUfunction* hfunc, CUmodule hmod, const char* name) {
  const auto real_call = [&] { return call.real().cuModuleGetFunction(hfunc, hmod, name); };
  return call.recording() ? maybe_loading(call, real_call) : real_call();
}

#if CUDA_VERSION >= 12040
CUresult cuFuncLoad(HookedCall& call, CUfunction function) {
  return of_kernel(call, function, [&] { return call.real().cuFuncLoad(function); });
}
#endif

CUresult cuFuncGetAttribute(HookedCall& call, int* pi, CUfunction_attribute attrib,
                            CUfunction hfunc) {
  return of_kernel(call, hfunc, [&] { return call.real().cuFuncGetAttribute(pi, attrib, hfunc); });
}

CUresult cuFuncSetAttribute(HookedCall& call, CUfunction hfunc, CUfunction_attribute attrib,
                            int value) {
  return of_kernel(call, hfunc,
                   [&] { return call.real().cuFuncSetAttribute(hfunc, attrib, value); });
}

CUresult cuFuncSetCacheConfig(HookedCall& call, CUfunction hfunc, CUfunc_cache config) {
  return of_kernel(call, hfunc, [&] { return call.real().cuFuncSetCacheConfig(hfunc, config); });
}

CUresult cuKernelGetFunction(HookedCall& call, CUfunction* pFunc, CUkernel kernel) {
  return of_kernel(call, kernel, [&] { return call.real().cuKernelGetFunction(pFunc, kernel); });
}

CUresult cuKernelGetAttribute(HookedCall& call, int* pi, CUfunction_attribute attrib,
                              CUkernel kernel, CUdevice dev) {
  return of_kernel(call, kernel,
                   [&] { return call.real().cuKernelGetAttribute(pi, attrib, kernel, dev); });
}

CUresult cuKernelSetAttribute(HookedCall& call, CUfunction_attribute attrib, int val,
                              CUkernel kernel, CUdevice dev) {
  return of_kernel(call, kernel,
                   [&] { return call.real().cuKernelSetAttribute(attrib, val, kernel, dev); });
}

CUresult cuKernelSetCacheConfig(HookedCall& call, CUkernel kernel, CUfunc_cache config,
                                CUdevice dev) {
  return of_kernel(call, kernel,
                   [&] { return call.real().cuKernelSetCacheConfig(kernel, config, dev); });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(HookedCall& call, int* numBlocks,
                                                     CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  return of_kernel(call, func, [&] {
    return call.real().cuOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, func, blockSize,
                                                                   dynamicSMemSize);
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(HookedCall& call, int* numBlocks,
                                                              CUfunction func, int blockSize,
                                                              size_t dynamicSMemSize,
                                                              unsigned int flags) {
  return of_kernel(call, func, [&] {
    return call.real().cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        numBlocks, func, blockSize, dynamicSMemSize, flags);
  });
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(HookedCall& call, size_t* dynamicSmemSize,
                                                 CUfunction func, int numBlocks, int blockSize) {
  return of_kernel(call, func, [&] {
    return call.real().cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, func, numBlocks,
                                                               blockSize);
  });
}

CUresult cuOccupancyMaxActiveClusters(HookedCall& call, int* numClusters, CUfunction func,
                                      const CUlaunchConfig* config) {
  return of_kernel(call, func, [&] {
    return call.real().cuOccupancyMaxActiveClusters(numClusters, func, config);
  });
}

}  // namespace cuwarden::families
