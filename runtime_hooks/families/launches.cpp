#include "runtime_hooks/families/launches.hpp"

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden::families {
namespace {

// How many threads the device can hold at once; 0: the driver does not say.
std::uint64_t resident_threads(const driver::RealDriver& real, DeviceOrdinal device) {
  int processors = 0, threads = 0;
  if (real.cuDeviceGetAttribute == nullptr ||
      real.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                device.value) != CUDA_SUCCESS ||
      real.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                                device.value) != CUDA_SUCCESS ||
      processors <= 0 || threads <= 0)
    return 0;
  return static_cast<std::uint64_t>(processors) * static_cast<std::uint64_t>(threads);
}

const char* name_of([[maybe_unused]] const driver::RealDriver& real,
                    [[maybe_unused]] CUfunction kernel) {
  const char* name = nullptr;
#if CUDA_VERSION >= 12030
  if (real.cuFuncGetName != nullptr && real.cuFuncGetName(&name, kernel) != CUDA_SUCCESS)
    name = nullptr;
#endif
  return name != nullptr ? name : "";
}

}  // namespace

// Asking what a kernel needs may load it: so the device is read before.
FirstLaunch::FirstLaunch(HookedCall& call, CUfunction kernel) noexcept
    : call_(call), kernel_(kernel), span_(call) {
  if (!call.recording()) return;
  const ErrnoGuard keep;
  Recorder& recorder = call.recorder();
  here_ = recorder.place();
  if (recorder.capture_seen()) return;
  if (recorder.implicit().may_read(recorder.ledger().recently_ns())) span_.begin(here_.device);
  local_needed_ = local_bytes();
  // What may take gigabytes is read in any case: there are few kernels that need more than all
  // before.
  const auto* const launches = recorder.implicit().launches_of(here_.device, here_.context);
  if (!span_.has_begun() && launches != nullptr &&
      local_needed_ > launches->local_bytes.load(std::memory_order_relaxed))
    span_.begin(here_.device);
}

std::uint64_t FirstLaunch::local_bytes() const noexcept {
  const driver::RealDriver& real = call_.real();
  int bytes = 0;
  if (real.cuFuncGetAttribute == nullptr ||
      real.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel_) !=
          CUDA_SUCCESS ||
      bytes < 0)
    return 0;
  return static_cast<std::uint64_t>(bytes);
}

void FirstLaunch::done(CUresult result) noexcept {
  if (!call_.recording()) return;
  const ErrnoGuard keep;
  const auto taken = span_.taken();
  if (result == CUDA_SUCCESS) {
    succeeded(taken);
    launched_kernels.add(kernel_);
    return;
  }
  if (taken) failed(*taken);
  call_.recorder().refused(call_.api(), result, ledger::Asked::launch, here_.device);
}

// Its code may have been loaded all the same. But where the device is too full for local memory,
// the driver gives back what others had, even what a context has from the start (measured: 1,342
// MiB after a launch that needed 2,112); the launches that follow take it again.
void FirstLaunch::failed(std::int64_t taken) noexcept {
  if (taken == 0) return;
  if (taken > 0) return span_.book({.module_bytes = taken});
  span_.book({.given_back_bytes = static_cast<std::uint64_t>(-taken)});
  Recorder& recorder = call_.recorder();
  if (auto* const launches = recorder.implicit().launches_of(here_.device, here_.context))
    launches->local_bytes.store(0, std::memory_order_relaxed);
  launched_kernels.forget_all();
}

void FirstLaunch::succeeded(std::optional<std::int64_t> taken) noexcept {
  Recorder& recorder = call_.recorder();
  ImplicitMemory::Launches* const launches =
      recorder.implicit().launches_of(here_.device, here_.context);
  if (launches == nullptr) return;
  // After captures it could not be asked before; now the kernel is there.
  const std::uint64_t needed = recorder.capture_seen() ? local_bytes() : local_needed_;
  const std::uint64_t before = launches->local_bytes.load(std::memory_order_relaxed);
  ledger::ImplicitChange change;
  if (taken) change = parted(*taken, before, needed);
  launches->any.store(true, std::memory_order_relaxed);
  if (needed > before) {
    raise_to(launches->local_bytes, needed);
    change.largest_local_bytes = needed;
    change.largest_local_kernel = name_of(call_.real(), kernel_);
  }
  if (taken && *taken != 0)
    span_.book(change);
  else if (change.largest_local_bytes != 0)
    recorder.implicit().book(recorder, here_.device, change);
}

// What the first launch of all takes besides has nothing to do with its kernel.
ledger::ImplicitChange FirstLaunch::parted(std::int64_t taken, std::uint64_t local_before,
                                           std::uint64_t local_needed) const noexcept {
  if (local_needed <= local_before) return {.module_bytes = taken};
  const auto* const launches = call_.recorder().implicit().launches_of(here_.device, here_.context);
  if (launches->any.load(std::memory_order_relaxed)) return {.local_memory_bytes = taken};
  const std::uint64_t threads = resident_threads(call_.real(), here_.device);
  const auto local =
      std::min(taken, static_cast<std::int64_t>(threads * (local_needed - local_before)));
  return {.module_bytes = taken - local, .local_memory_bytes = local};
}

}  // namespace cuwarden::families
