// Modules and libraries: their code and variables take device memory. With lazy loading, which is
// the driver's default, most of the code is loaded by the first launches instead.
#include <algorithm>

#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/hooks/execution/implicit_span.hpp"
#include "runtime_hooks/tracking/launched_kernels.hpp"

namespace cuwarden::hooks {
namespace {

// Makes a call that loads or unloads code, and books the memory that it took or gave back.
template <class Call>
CUresult measured(HookedCall& call, Call real_call) {
  ImplicitSpan span(call);
  if (call.recording()) span.begin(call.execution().queries.current().device);
  const CUresult result = real_call();
  const auto taken = span.taken_by_code();
  if (taken && *taken != 0) span.book({.module_bytes = *taken});
  return result;
}

template <class Load>
CUresult loaded(HookedCall& call, Load load) {
  const auto attempt = [&] { return measured(call, load); };
  return call.rescued(attempt(), {ledger::Asked::module}, attempt);
}

// The values of a call's JIT options. The driver overwrites some of them with results: the size of
// a log buffer becomes the size of the log. So a repeated call needs the program's values back.
class JitValues {
 public:
  JitValues(void** values, unsigned count)
      : values_(values), count_(values == nullptr ? 0 : count) {
    if (fits()) std::copy_n(values_, count_, kept_);
  }
  // False if the options are more than the object can keep.
  bool fits() const { return count_ <= most; }
  // Gives the options the values that they had at the construction. Options that the driver has not
  // changed may be in memory that cannot be written to.
  void restore() const {
    for (unsigned i = 0; i < count_; ++i)
      if (values_[i] != kept_[i]) values_[i] = kept_[i];
  }

 private:
  static constexpr unsigned most = 64;  // cuda.h has 35 options
  void** const values_;
  const unsigned count_;
  void* kept_[most];
};

// Loads code with JIT options. Options that could not be kept are a reason not to repeat the call.
template <class Load>
CUresult loaded(HookedCall& call, const JitValues& options, Load load) {
  const CUresult result = measured(call, load);
  if (!options.fits()) return result;
  return call.rescued(result, {ledger::Asked::module}, [&] {
    options.restore();
    return measured(call, load);
  });
}

template <class Call>
CUresult without_code(HookedCall& call, Call real_call) {
  // The driver may give the handles of the unloaded kernels to other kernels later.
  const CUresult result = measured(call, real_call);
  if (result == CUDA_SUCCESS) {
    launched_kernels.forget_all();
    loaded_kernels.forget_all();
  }
  return result;
}

}  // namespace

CUresult cuModuleLoad(HookedCall& call, CUmodule* module, const char* fname) {
  return loaded(call, [&] { return call.real().cuModuleLoad(module, fname); });
}

CUresult cuModuleLoadData(HookedCall& call, CUmodule* module, const void* image) {
  return loaded(call, [&] { return call.real().cuModuleLoadData(module, image); });
}

CUresult cuModuleLoadDataEx(HookedCall& call, CUmodule* module, const void* image,
                            unsigned int numOptions, CUjit_option* options, void** optionValues) {
  return loaded(call, JitValues(optionValues, numOptions), [&] {
    return call.real().cuModuleLoadDataEx(module, image, numOptions, options, optionValues);
  });
}

CUresult cuModuleLoadFatBinary(HookedCall& call, CUmodule* module, const void* fatCubin) {
  return loaded(call, [&] { return call.real().cuModuleLoadFatBinary(module, fatCubin); });
}

CUresult cuModuleUnload(HookedCall& call, CUmodule hmod) {
  return without_code(call, [&] { return call.real().cuModuleUnload(hmod); });
}

CUresult cuLibraryLoadData(HookedCall& call, CUlibrary* library, const void* code,
                           CUjit_option* jitOptions, void** jitOptionsValues,
                           unsigned int numJitOptions, CUlibraryOption* libraryOptions,
                           void** libraryOptionValues, unsigned int numLibraryOptions) {
  return loaded(call, JitValues(jitOptionsValues, numJitOptions), [&] {
    return call.real().cuLibraryLoadData(library, code, jitOptions, jitOptionsValues, numJitOptions,
                                         libraryOptions, libraryOptionValues, numLibraryOptions);
  });
}

CUresult cuLibraryLoadFromFile(HookedCall& call, CUlibrary* library, const char* fileName,
                               CUjit_option* jitOptions, void** jitOptionsValues,
                               unsigned int numJitOptions, CUlibraryOption* libraryOptions,
                               void** libraryOptionValues, unsigned int numLibraryOptions) {
  return loaded(call, JitValues(jitOptionsValues, numJitOptions), [&] {
    return call.real().cuLibraryLoadFromFile(library, fileName, jitOptions, jitOptionsValues,
                                             numJitOptions, libraryOptions, libraryOptionValues,
                                             numLibraryOptions);
  });
}

CUresult cuLibraryGetModule(HookedCall& call, CUmodule* pMod, CUlibrary library) {
  return loaded(call, [&] { return call.real().cuLibraryGetModule(pMod, library); });
}

CUresult cuLibraryGetGlobal(HookedCall& call, CUdeviceptr* dptr, size_t* bytes, CUlibrary library,
                            const char* name) {
  return loaded(call, [&] { return call.real().cuLibraryGetGlobal(dptr, bytes, library, name); });
}

CUresult cuLibraryGetManaged(HookedCall& call, CUdeviceptr* dptr, size_t* bytes, CUlibrary library,
                             const char* name) {
  return loaded(call, [&] { return call.real().cuLibraryGetManaged(dptr, bytes, library, name); });
}

CUresult cuLibraryGetUnifiedFunction(HookedCall& call, void** fptr, CUlibrary library,
                                     const char* symbol) {
  return loaded(call,
                [&] { return call.real().cuLibraryGetUnifiedFunction(fptr, library, symbol); });
}

CUresult cuLibraryUnload(HookedCall& call, CUlibrary library) {
  return without_code(call, [&] { return call.real().cuLibraryUnload(library); });
}

}  // namespace cuwarden::hooks
