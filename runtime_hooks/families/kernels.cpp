// Questions about kernels, and what is set of them: with lazy loading, the first of these brings a
// kernel's code to the device. NCCL asks about each of its kernels before it launches any.
#include "runtime_hooks/families/bodies.hpp"
#include "runtime_hooks/families/launched_kernels.hpp"

namespace cuwarden::families {
namespace {

// Whether the device was read. Nobody gives code back for a question, and none is as large: another
// process did that meanwhile.
template <class Call>
CUresult maybe_loading(HookedCall& call, DeviceOrdinal device, bool& was_read, Call real_call) {
  constexpr std::int64_t largest_code = std::int64_t{2} << 30;
  ImplicitSpan span(call);
  if (call.recorder().implicit().may_ask(call.recorder().ledger().recently_ns()))
    span.begin(device);
  was_read = span.has_begun();
  const CUresult result = real_call();
  const auto taken = span.taken();
  if (taken && *taken > 0 && *taken <= largest_code) span.book({.module_bytes = *taken});
  note_refusal(call, result, ledger::Asked::module);
  return result;
}

// Of the device that is read: the current one.
DeviceOrdinal device_of(HookedCall& call) {
  const DeviceOrdinal only = call.recorder().only_device();
  return only != no_device ? only : call.recorder().place().device;
}

// A library's kernel is loaded on each device for itself.
CUfunction key_of(CUfunction kernel, DeviceOrdinal device) {
  return reinterpret_cast<CUfunction>(reinterpret_cast<std::uintptr_t>(kernel) ^
                                      static_cast<std::uintptr_t>(device.value) << 56);
}

template <class Handle, class Call>
CUresult of_kernel(HookedCall& call, Handle handle, Call real_call) {
  if (!call.recording()) return real_call();
  const auto kernel = reinterpret_cast<CUfunction>(handle);
  const DeviceOrdinal device = device_of(call);
  const CUfunction key = key_of(kernel, device);
  if (device == no_device || loaded_kernels.has(key) || launched_kernels.has(kernel))
    return real_call();
  bool was_read = false;
  const CUresult result = maybe_loading(call, device, was_read, real_call);
  if (result == CUDA_SUCCESS && was_read) loaded_kernels.add(key);
  return result;
}

// For the device that the call names, which may be another one: then nothing is read.
template <class Call>
CUresult of_kernel_on(HookedCall& call, CUkernel kernel, CUdevice device, Call real_call) {
  if (!call.recording() || device_of(call).value != device) return real_call();
  return of_kernel(call, kernel, real_call);
}

}  // namespace

CUresult cuModuleGetFunction(HookedCall& call, CUfunction* hfunc, CUmodule hmod, const char* name) {
  const auto real_call = [&] { return call.real().cuModuleGetFunction(hfunc, hmod, name); };
  if (!call.recording()) return real_call();
  bool was_read = false;
  return maybe_loading(call, device_of(call), was_read, real_call);
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
  return of_kernel_on(call, kernel, dev,
                      [&] { return call.real().cuKernelGetAttribute(pi, attrib, kernel, dev); });
}

CUresult cuKernelSetAttribute(HookedCall& call, CUfunction_attribute attrib, int val,
                              CUkernel kernel, CUdevice dev) {
  return of_kernel_on(call, kernel, dev,
                      [&] { return call.real().cuKernelSetAttribute(attrib, val, kernel, dev); });
}

CUresult cuKernelSetCacheConfig(HookedCall& call, CUkernel kernel, CUfunc_cache config,
                                CUdevice dev) {
  return of_kernel_on(call, kernel, dev,
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
