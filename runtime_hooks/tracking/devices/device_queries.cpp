#include "runtime_hooks/tracking/devices/device_queries.hpp"

#include <cstddef>

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden::tracking {
namespace {

ContextId id_of(CUcontext context) noexcept { return {reinterpret_cast<std::uint64_t>(context)}; }

}  // namespace

CurrentContext DeviceQueries::current() const noexcept {
  const ErrnoGuard keep;
  return current_unguarded();
}

CurrentContext DeviceQueries::current_unguarded() const noexcept {
  CurrentContext here;
  here.ends = contexts_.ends();
  CUcontext context = nullptr;
  if (real_.cuCtxGetCurrent != nullptr && real_.cuCtxGetCurrent(&context) == CUDA_SUCCESS)
    here.context = id_of(context);
  CUdevice device = -1;
  if (context != nullptr && real_.cuCtxGetDevice != nullptr &&
      real_.cuCtxGetDevice(&device) == CUDA_SUCCESS)
    here.device.value = device;
  return here;
}

// Returns the context in which a request was served, which is therefore alive. If the process sees
// only one device, the context is that device's, and cuCtxGetDevice need not be asked.
CurrentContext DeviceQueries::current_that_served() noexcept {
  CurrentContext here;
  CUcontext context = nullptr;
  if ((here.device = only_device()) == no_device || real_.cuCtxGetCurrent == nullptr ||
      real_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr)
    return current_unguarded();
  here.context = id_of(context);
  return here;
}

ContextId DeviceQueries::context_of(CUstream stream) const noexcept {
  const bool is_default =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  CUcontext context = nullptr;
  const ErrnoGuard keep;
  if (!is_default && real_.cuStreamGetCtx != nullptr &&
      real_.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS && context != nullptr)
    return id_of(context);
  if (real_.cuCtxGetCurrent == nullptr || real_.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
    return {};
  return id_of(context);
}

DeviceOrdinal DeviceQueries::device_of(CUdeviceptr pointer) const noexcept {
  const ErrnoGuard keep;
  int ordinal = -1;
  if (real_.cuPointerGetAttribute != nullptr &&
      real_.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) ==
          CUDA_SUCCESS)
    return DeviceOrdinal{ordinal};
  return no_device;
}

[[gnu::cold]] int DeviceQueries::ask_device_count() noexcept {
  const ErrnoGuard keep;
  int count = 0;
  if (real_.cuDeviceGetCount == nullptr || real_.cuDeviceGetCount(&count) != CUDA_SUCCESS) return 0;
  device_count_.store(count, std::memory_order_relaxed);
  return count;
}

std::uint64_t DeviceQueries::total_bytes_of(DeviceOrdinal device) const noexcept {
  const ErrnoGuard keep;
  std::size_t total = 0;
  if (device == no_device || real_.cuDeviceTotalMem_v2 == nullptr ||
      real_.cuDeviceTotalMem_v2(&total, device.value) != CUDA_SUCCESS)
    return 0;
  return total;
}

int DeviceQueries::attribute_of(DeviceOrdinal device, CUdevice_attribute which,
                                int otherwise) const noexcept {
  const ErrnoGuard keep;
  int value = otherwise;
  if (device == no_device || real_.cuDeviceGetAttribute == nullptr ||
      real_.cuDeviceGetAttribute(&value, which, device.value) != CUDA_SUCCESS)
    return otherwise;
  return value;
}

int DeviceQueries::compute_mode_of(DeviceOrdinal device) const noexcept {
  return attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT);
}

bool DeviceQueries::is_integrated(DeviceOrdinal device) const noexcept {
  return attribute_of(device, CU_DEVICE_ATTRIBUTE_INTEGRATED, 0) == 1;
}

bool DeviceQueries::primary_is_active(DeviceOrdinal device) const noexcept {
  const ErrnoGuard keep;
  unsigned int flags = 0;
  int active = 1;
  return real_.cuDevicePrimaryCtxGetState == nullptr ||
         real_.cuDevicePrimaryCtxGetState(device.value, &flags, &active) != CUDA_SUCCESS ||
         active != 0;
}

ContextId DeviceQueries::live_context_on(DeviceOrdinal device) const noexcept {
  const ContextId primary = contexts_.primary_of(device);
  if (primary.value != 0 && primary_is_active(device)) return primary;
  return contexts_.created_on(device);
}

}  // namespace cuwarden::tracking
