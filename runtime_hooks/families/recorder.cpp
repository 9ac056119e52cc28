// Adds stack, context and device to what families saw.
#include "runtime_hooks/families/recorder.hpp"

#include <alloca.h>

#include <algorithm>
#include <cstring>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/driver/calling_threads.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/families/host_memory_use.hpp"

namespace cuwarden::families {
namespace {

// cuMemGetInfo takes 3 us: at this interval 0.003 % of the run.
constexpr std::uint64_t reading_interval_ns = 100'000'000;
// Reading /proc/self/statm takes about 10 us.
constexpr std::uint64_t rss_interval_ns = 250'000'000;

bool due(std::atomic<std::uint64_t>& next, std::uint64_t now, std::uint64_t interval) {
  std::uint64_t planned = next.load(std::memory_order_relaxed);
  return now >= planned &&
         next.compare_exchange_strong(planned, now + interval, std::memory_order_relaxed);
}

}  // namespace

Place Recorder::place() const noexcept {
  const ErrnoGuard keep;
  return place_unguarded();
}

Place Recorder::place_unguarded() const noexcept {
  Place place;
  CUcontext context = nullptr;
  if (real_.cuCtxGetCurrent != nullptr && real_.cuCtxGetCurrent(&context) == CUDA_SUCCESS)
    place.context.value = reinterpret_cast<std::uint64_t>(context);
  CUdevice device = -1;
  if (context != nullptr && real_.cuCtxGetDevice != nullptr &&
      real_.cuCtxGetDevice(&device) == CUDA_SUCCESS)
    place.device.value = device;
  return place;
}

// A context in which something was served is alive, and of the only device where there is one: the
// driver's answer for one that has ended is an error.
Place Recorder::place_that_served() noexcept {
  Place place;
  CUcontext context = nullptr;
  if ((place.device = only_device()) == no_device || real_.cuCtxGetCurrent == nullptr ||
      real_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr)
    return place_unguarded();
  place.context.value = reinterpret_cast<std::uint64_t>(context);
  return place;
}

ContextId Recorder::context_of(CUstream stream) const noexcept {
  const bool is_default =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  CUcontext context = nullptr;
  const ErrnoGuard keep;
  if (!is_default && real_.cuStreamGetCtx != nullptr &&
      real_.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS && context != nullptr)
    return {reinterpret_cast<std::uint64_t>(context)};
  if (real_.cuCtxGetCurrent == nullptr || real_.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
    return {};
  return {reinterpret_cast<std::uint64_t>(context)};
}

DeviceOrdinal Recorder::device_of(CUdeviceptr pointer) const noexcept {
  const ErrnoGuard keep;
  int ordinal = -1;
  if (real_.cuPointerGetAttribute != nullptr &&
      real_.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) ==
          CUDA_SUCCESS)
    return DeviceOrdinal{ordinal};
  return no_device;
}

[[gnu::cold]] int Recorder::ask_device_count() noexcept {
  const ErrnoGuard keep;
  int count = 0;
  if (real_.cuDeviceGetCount == nullptr || real_.cuDeviceGetCount(&count) != CUDA_SUCCESS) return 0;
  device_count_.store(count, std::memory_order_relaxed);
  return count;
}

// A known stack's name is the group that was last made from there: nearly always the one that is
// wanted, and otherwise one of the same stack.
GroupId Recorder::group_unguarded(const Caller& caller, Kind kind, DeviceOrdinal device) noexcept {
  if (stack_depth_ == 0) return ledger_.group({{}, caller.api, kind, device});
  if (const GroupId known{unwinder_.recognise(caller.frame)}; known.value != 0)
    return ledger_.group_of_stack_in(known, caller.api, kind, device);
  return group_of_unknown(caller, kind, device);
}

[[gnu::noinline]] GroupId Recorder::group_of_unknown(const Caller& caller, Kind kind,
                                                     DeviceOrdinal device) noexcept {
  const auto [api, frame] = caller;
  const std::uint32_t generation = unwinder_.generation();
  auto* frames = static_cast<std::uint64_t*>(alloca(stack_depth_ * sizeof(std::uint64_t)));
  const stacks::Captured captured = unwinder_.capture(frame, {frames, stack_depth_});
  bool added = false;
  const StackId stack = ledger_.intern_stack({frames, captured.count}, captured.truncated, &added);
  const GroupId group = ledger_.group({stack, api, kind, device});
  // What comes once is not worth it. 0: the ledger is full.
  if (!added && stack.value != 0 && group.value != 0)
    unwinder_.remember(ledger_.thread_slot(), frame, {frames, stack_depth_}, group.value,
                       generation);
  return group;
}

StackId Recorder::whole_stack(const Caller& caller) noexcept {
  std::uint64_t frames[stacks::depth_limit];
  const stacks::Captured captured = unwinder_.capture(caller.frame, frames);
  return captured.whole ? ledger_.intern_stack({frames, captured.count}, false) : StackId{};
}

GroupId Recorder::group_of(const Caller& caller, Kind kind, DeviceOrdinal device) noexcept {
  const ErrnoGuard keep;
  return group_unguarded(caller, kind, device);
}

void Recorder::modules_changed() noexcept {
  unwinder_.modules_changed();
  ledger_.modules_changed();
  // What was named between the two may have a stack that is retired now.
  unwinder_.forget_names();
}

void Recorder::give_notice_of(std::uint32_t reasons) noexcept {
  const ErrnoGuard keep;
  const std::uint32_t fresh = reasons & ~noticed_.fetch_or(reasons, std::memory_order_relaxed);
  for (const ledger::Reason reason : {ledger::reason_ledger_full, ledger::reason_recording_stopped})
    if ((fresh & reason) != 0) notice_(reason);
}

void Recorder::allocated(const Caller& caller, CUresult result,
                         const Allocation& allocation) noexcept {
  const ErrnoGuard keep;
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) return;
  const Place here = result == CUDA_SUCCESS ? place_that_served() : place_unguarded();
  DeviceOrdinal device = no_device;
  if (!allocation.host) device = allocation.device != no_device ? allocation.device : here.device;
  meet(here.device);
  // Handles and pools may lie on a device that has no context here.
  if (device != here.device) {
    meet(device);
    implicit_.disturb(device);
  }
  const GroupId group = group_unguarded(caller, allocation.kind, device);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    refused({allocation.bytes, device, caller.api, allocation.kind}, group, result,
            ledger::Asked::memory);
    give_notice();
    return;
  }
  if (allocation.address == 0) return;  // success without memory: a size of 0
  if (was_refused_.load(std::memory_order_relaxed))
    served({allocation.bytes, device, caller.api, allocation.kind});
  // As of the last tick: the kernel's exact answer would take a tenth of the whole call.
  const std::uint64_t now = ledger_.recently_ns();
  ledger::NewRecord record;
  record.space = allocation.space;
  record.address.value = allocation.address;
  record.bytes.value = allocation.bytes;
  record.group = group;
  record.time_ns = now;
  record.context = contexts_.owner(here.context);
  record.related = allocation.related;
  record.references = allocation.opened ? 1 : 0;
  if (allocation.owned_by_context) record.flags |= ledger::record_owned_by_context;
  if (allocation.counts_no_bytes) record.flags |= ledger::record_counts_no_bytes;
  if (allocation.in_pool) record.flags |= ledger::record_in_pool;
  if (allocation.space == Space::vmm_handle)
    ledger_.handle_created(record);
  else
    ledger_.add(record);
  give_notice();
  read_device_now_and_then(now);
}

ledger::TakenRecord Recorder::take(Space space, std::uint64_t address) noexcept {
  const ledger::TakenRecord taken = ledger_.take(space, DeviceAddress{address});
  if (taken && implicit_.any_span()) implicit_.disturb(ledger_.device_of(taken.fields.group));
  return taken;
}

// What a call does to another device than the current one is known where it is recorded, or ends a
// context; pools that are trimmed and ranges that are unmapped there are not noticed.
[[gnu::cold]] void Recorder::disturb_spans() noexcept {
  const DeviceOrdinal here = place().device;
  if (here == no_device)
    implicit_.disturb_all();
  else
    implicit_.disturb(here);
}

void Recorder::settle(const ledger::TakenRecord& taken, CUresult result) noexcept {
  const bool gone = result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED;
  if (!taken) {
    if (result == CUDA_SUCCESS) unknown_free();
    return;
  }
  if (!gone) ledger_.put_back(taken);
  if (implicit_.any_span()) implicit_.disturb(ledger_.device_of(taken.fields.group));
  give_notice();
  if (result == CUDA_SUCCESS) read_device_now_and_then(taken.taken_ns);
}

void Recorder::unknown_free() noexcept {
  give_notice();
  // What was allocated may be missing for a reason of our own: no sign of a way that leads past us.
  if ((ledger_.header().reasons.load(std::memory_order_relaxed) & noteworthy) == 0)
    ledger_.count_unknown_free();
}

void Recorder::unknown_release() noexcept {
  if (!unrecorded_.load(std::memory_order_relaxed)) unknown_free();
}

void Recorder::context_ended(ContextId context) noexcept {
  const ErrnoGuard keep;
  ledger_.release_context(context);
  if (rescues()) captures_.context_ends(context);
  end_pools_of(context);
  contexts_.ended(context);
  implicit_.context_ended(*this);
}

bool Recorder::primary_is_active(DeviceOrdinal device) const noexcept {
  const ErrnoGuard keep;
  unsigned int flags = 0;
  int active = 1;
  return real_.cuDevicePrimaryCtxGetState == nullptr ||
         real_.cuDevicePrimaryCtxGetState(device.value, &flags, &active) != CUDA_SUCCESS ||
         active != 0;
}

ContextId Recorder::live_context_on(DeviceOrdinal device) const noexcept {
  const ContextId primary = contexts_.primary_of(device);
  if (primary.value != 0 && primary_is_active(device)) return primary;
  return contexts_.created_on(device);
}

void Recorder::meet_first(DeviceOrdinal device) noexcept {
  if (met_[device.value].exchange(true)) return;
  const ErrnoGuard keep;
  char name[128] = "";
  CUuuid uuid{};
  CUdevice handle = 0;
  if (real_.cuDeviceGet != nullptr && real_.cuDeviceGet(&handle, device.value) == CUDA_SUCCESS) {
    if (real_.cuDeviceGetName != nullptr) real_.cuDeviceGetName(name, sizeof name, handle);
    if (real_.cuDeviceGetUuid_v2 != nullptr) real_.cuDeviceGetUuid_v2(&uuid, handle);
  }
  std::uint8_t bytes[16];
  static_assert(sizeof bytes == sizeof uuid.bytes);
  std::memcpy(bytes, uuid.bytes, sizeof bytes);
  name[sizeof name - 1] = '\0';
  ledger_.set_device(device, name, bytes);
}

void Recorder::read_device(DeviceOrdinal device, ledger::ReadingAt at) noexcept {
  const auto reading = driver::read_current_device(real_);
  if (!reading) return;
  ledger_.read_device(device, {.at = at,
                               .total_bytes = reading->total_bytes,
                               .free_bytes = reading->free_bytes,
                               .pool_idle_bytes = idle_bytes(device)});
  if (pool_use_ != PoolUse::never && !process_ends()) look_after_pool(device, reading->total_bytes);
}

void Recorder::look_around(std::uint64_t now) noexcept {
  const ErrnoGuard keep;
  if (due(next_rss_ns_, now, rss_interval_ns)) {
    const std::uint64_t rss = host_memory_in_use();
    if (rss != 0) ledger_.sample_host_rss(ByteCount{rss});
  }
  const bool is_due = due(next_reading_ns_, now, reading_interval_ns);
  next_look_ns_.store(std::min(next_rss_ns_.load(std::memory_order_relaxed),
                               next_reading_ns_.load(std::memory_order_relaxed)),
                      std::memory_order_relaxed);
  if (!is_due) return;
  const Place here = place_unguarded();
  if (here.device != no_device) read_device(here.device, ledger::ReadingAt::last_call);
}

void Recorder::process_is_ending() noexcept {
  ending_.store(true, std::memory_order_relaxed);
  if (pool_use_ == PoolUse::never) return;
  note_pinned();
  if (!pool_.any()) return;
  for (std::int32_t ordinal = 0; ordinal < device_limit; ++ordinal)
    if (met_[ordinal].load(std::memory_order_relaxed)) note_pool(DeviceOrdinal{ordinal});
}

void Recorder::read_devices_at_exit(const FunctionRef<bool()>& may_ask) noexcept {
  const ErrnoGuard keep;
  if (real_.cuCtxPushCurrent_v2 == nullptr || real_.cuCtxPopCurrent_v2 == nullptr) return;
  for (std::int32_t ordinal = 0; ordinal < device_limit && may_ask(); ++ordinal) {
    if (!met_[ordinal].load(std::memory_order_relaxed)) continue;
    const DeviceOrdinal device{ordinal};
    const ContextId context = live_context_on(device);
    if (context.value == 0 || !may_ask()) continue;
    const CUresult result = real_.cuCtxPushCurrent_v2(reinterpret_cast<CUcontext>(context.value));
    driver::note_failed_call(result);
    if (result != CUDA_SUCCESS) continue;
    if (may_ask()) read_device(device, ledger::ReadingAt::exit);
    CUcontext popped = nullptr;
    if (may_ask()) real_.cuCtxPopCurrent_v2(&popped);
  }
  const std::uint64_t rss = host_memory_in_use();
  if (rss != 0) ledger_.sample_host_rss(ByteCount{rss});
}

}  // namespace cuwarden::families
