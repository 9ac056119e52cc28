// Modules and libraries: their code and variables take device memory. With lazy loading, which is
// the driver's default, most of the code is loaded by the first launches instead.
#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/hooks/execution/implicit_span.hpp"
#include "runtime_hooks/tracking/launched_kernels.hpp"

namespace cuwarden::hooks {
namespace {

template <class Call>
CUresult with_code(HookedCall& call, Call real_call) {
  ImplicitSpan span(call);
  if (call.recording()) span.begin(call.execution().queries.current().device);
  const CUresult result = real_call();
  const auto taken = span.taken_by_code();
  if (taken && *taken != 0) span.book({.module_bytes = *taken});
  call.refused(result, ledger::Asked::module);
  return result;
}

template <class Call>
CUresult without_code(HookedCall& call, Call real_call) {
  // The driver may give the handles of the unloaded kernels to other kernels later.
  const CUresult result = with_code(call, real_call);
  if (result == CUDA_SUCCESS) {
    launched_kernels.forget_all();
    loaded_kernels.forget_all();
  }
  return result;
}

}  // namespace

CUresult cuModuleLoad(HookedCall& call, CUmodule* module, const char* fname) {
  return with_code(call, [&] { return call.real().cuModuleLoad(module, fname); });
}

CUresult cuModuleLoadData(HookedCall& call, CUmodule* module, const void* image) {
  return with_code(call, [&] { return call.real().cuModuleLoadData(module, image); });
}

CUresult cuModuleLoadDataEx(HookedCall& call, CUmodule* module, const void* image,
                            unsigned int numOptions, CUjit_option* options, void** optionValues) {
  return with_code(call, [&] {
    return call.real().cuModuleLoadDataEx(module, image, numOptions, options, optionValues);
  });
}

CUresult cuModuleLoadFatBinary(HookedCall& call, CUmodule* module, const void* fatCubin) {
  return with_code(call, [&] { return call.real().cuModuleLoadFatBinary(module, fatCubin); });
}

CUresult cuModuleUnload(HookedCall& call, CUmodule hmod) {
  return without_code(call, [&] { return call.real().cuModuleUnload(hmod); });
}

CUresult cuLibraryLoadData(HookedCall& call, CUlibrary* library, const void* code,
                           CUjit_option* jitOptions, void** jitOptionsValues,
                           unsigned int numJitOptions, CUlibraryOption* libraryOptions,
                           void** libraryOptionValues, unsigned int numLibraryOptions) {
  return with_code(call, [&] {
    return call.real().cuLibraryLoadData(library, code, jitOptions, jitOptionsValues, numJitOptions,
                                         libraryOptions, libraryOptionValues, numLibraryOptions);
  });
}

CUresult cuLibraryLoadFromFile(HookedCall& call, CUlibrary* library, const char* fileName,
                               CUjit_option* jitOptions, void** jitOptionsValues,
                               unsigned int numJitOptions, CUlibraryOption* libraryOptions,
                               void** libraryOptionValues, unsigned int numLibraryOptions) {
  return with_code(call, [&] {
    return call.real().cuLibraryLoadFromFile(library, fileName, jitOptions, jitOptionsValues,
                                             numJitOptions, libraryOptions, libraryOptionValues,
                                             numLibraryOptions);
  });
}

CUresult cuLibraryGetModule(HookedCall& call, CUmodule* pMod, CUlibrary library) {
  return with_code(call, [&] { return call.real().cuLibraryGetModule(pMod, library); });
}

CUresult cuLibraryUnload(HookedCall& call, CUlibrary library) {
  return without_code(call, [&] { return call.real().cuLibraryUnload(library); });
}

}  // namespace cuwarden::hooks
