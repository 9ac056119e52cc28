// Calls that ask for a kernel's attributes or set them. With lazy loading, the first such call
// brings the kernel's code to the device. NCCL asks about each of its kernels before it launches
// any.
#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/hooks/execution/object_span.hpp"
#include "runtime_hooks/tracking/handle_set.hpp"

namespace cuwarden::hooks {
namespace {

std::uint64_t number_of(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }

// Makes a call about a kernel whose code is loaded already, or on a device that is not the current
// one. The memory that the call takes is not measured.
template <class Call>
CUresult unmeasured(HookedCall& call, DeviceOrdinal device, Call real_call) {
  return call.rescued(real_call(), {ledger::Asked::module, device}, real_call);
}

// Makes a call that may load the code `object`, and records the memory that it took. Sets `is_read`
// to true if the call was measured.
template <class Call>
CUresult maybe_loading(HookedCall& call, const tracking::ImplicitObject& object,
                       DeviceOrdinal device, bool& is_read, Call real_call) {
  const auto attempt = [&] {
    ObjectSpan span(call);
    is_read = span.has_begun();
    const CUresult result = real_call();
    if (result == CUDA_SUCCESS) span.used(object);
    return result;
  };
  return call.rescued(attempt(), {ledger::Asked::module, device}, attempt);
}

// Returns the device that a reading is of: the current one.
DeviceOrdinal device_of(HookedCall& call) {
  const DeviceOrdinal only = call.execution().queries.only_device();
  return only != no_device ? only : call.execution().queries.current().device;
}

// Returns the key of a kernel on a device, since each device loads a library's kernel separately.
CUfunction key_of(CUfunction kernel, DeviceOrdinal device) {
  return reinterpret_cast<CUfunction>(reinterpret_cast<std::uintptr_t>(kernel) ^
                                      static_cast<std::uintptr_t>(device.value) << 56);
}

template <class Handle, class Call>
CUresult of_kernel_on(HookedCall& call, Handle handle, DeviceOrdinal device, Call real_call) {
  const auto kernel = reinterpret_cast<CUfunction>(handle);
  const CUfunction key = key_of(kernel, device);
  if (device == no_device) return unmeasured(call, device, real_call);
  if (loaded_kernels.has(key)) {
    call.keeps_bases();
    return unmeasured(call, device, real_call);
  }
  // The launch may have been on another device, which loads its own code.
  if (launched_kernels.has(kernel)) return unmeasured(call, device, real_call);
  bool is_read = false;
  const CUresult result =
      maybe_loading(call, tracking::ImplicitObjects::code_of(number_of(handle), device), device,
                    is_read, real_call);
  if (result == CUDA_SUCCESS && is_read) loaded_kernels.add(key);
  return result;
}

template <class Handle, class Call>
CUresult of_kernel(HookedCall& call, Handle handle, Call real_call) {
  if (!call.recording()) return real_call();
  return of_kernel_on(call, handle, device_of(call), real_call);
}

// Makes a call about a kernel on the device `named`. If that is not the current device, nothing is
// measured.
template <class Call>
CUresult of_kernel(HookedCall& call, CUkernel kernel, CUdevice named, Call real_call) {
  if (!call.recording()) return real_call();
  const DeviceOrdinal device = device_of(call);
  return device.value == named ? of_kernel_on(call, kernel, device, real_call)
                               : unmeasured(call, DeviceOrdinal{named}, real_call);
}

}  // namespace

#define OF_KERNEL CUWARDEN_HOOK_BY
#include "runtime_hooks/driver/hooks.def"

CUresult cuModuleGetFunction(HookedCall& call, CUfunction* hfunc, CUmodule hmod, const char* name) {
  const auto real_call = [&] { return call.real().cuModuleGetFunction(hfunc, hmod, name); };
  if (!call.recording()) return real_call();
  // The module may be that of a library on the current device.
  tracking::CodeOwners& owners = call.execution().objects.owners;
  tracking::CodeOwner owner = owners.of(number_of(hmod));
  const DeviceOrdinal device = device_of(call);
  tracking::ImplicitObject object{Kind::module, Space::module, number_of(hmod)};
  if (owner.handle != 0)
    object = {Kind::module, owner.space, owner.handle, device};
  else
    owner = {Space::module, number_of(hmod)};
  bool is_read = false;
  const CUresult result = maybe_loading(call, object, device, is_read, real_call);
  if (result == CUDA_SUCCESS) owners.set(number_of(*hfunc), owner);
  return result;
}

CUresult cuLibraryGetKernel(HookedCall& call, CUkernel* pKernel, CUlibrary library,
                            const char* name) {
  const CUresult result = call.real().cuLibraryGetKernel(pKernel, library, name);
  if (call.recording() && result == CUDA_SUCCESS)
    call.execution().objects.owners.set(number_of(*pKernel), {Space::library, number_of(library)});
  return result;
}

CUresult cuKernelGetFunction(HookedCall& call, CUfunction* pFunc, CUkernel kernel) {
  const CUresult result =
      of_kernel(call, kernel, [&] { return call.real().cuKernelGetFunction(pFunc, kernel); });
  if (call.recording() && result == CUDA_SUCCESS) {
    tracking::CodeOwners& owners = call.execution().objects.owners;
    owners.set(number_of(*pFunc), owners.of(number_of(kernel)));
  }
  return result;
}

}  // namespace cuwarden::hooks
