// Contexts. A context takes device memory for itself. Its end releases the memory that it owns; the
// report counts that neither as a leak nor as a free.
#include <algorithm>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/driver/gate_scope.hpp"
#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/hooks/execution/context_creation.hpp"
#include "runtime_hooks/hooks/execution/implicit_span.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/serving/pool_memory.hpp"

namespace cuwarden::hooks {
namespace {

// Returns true if a call that ends a context has ended it. When the process ends, the driver tears
// everything down itself: a destructor's call then answers DEINITIALIZED, and the context is gone.
bool has_ended(CUresult result) {
  return result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED;
}

template <class Create>
CUresult created(HookedCall& call, CUcontext* context, CUdevice device, Create create) {
  const auto attempt = [&] {
    ContextCreation creation(call, DeviceOrdinal{device});
    const CUresult result = create();
    if (call.recording() && result == CUDA_SUCCESS) {
      call.execution().contexts.created(DeviceOrdinal{device}, id_of(*context));
      call.execution().pools.device_is_used(DeviceOrdinal{device});
      creation.done(id_of(*context));
    }
    return result;
  };
  return call.rescued(attempt(), {ledger::Asked::context, DeviceOrdinal{device}}, attempt);
}

// Measures what the end of a context gives back beside its recorded memory, if the device has
// another context besides.
class ContextEnd {
 public:
  ContextEnd(HookedCall& call, ContextId context) : call_(call), span_(call) {
    if (!call.recording()) return;
    const ErrnoGuard keep;
    const tracking::LiveContexts& contexts = call.execution().contexts;
    device_ = contexts.device_of(context);
    call.execution().implicit.disturb(device_);
    if (device_ == no_device || !answers_for(call, device_)) return;
    const ContextId primary = contexts.primary_of(device_);
    const bool alone = (primary.value == 0 || primary == context) &&
                       contexts.created_on(device_, context).value == 0;
    if (alone) return;
    live_before_ = live();
    span_.begin(device_);
  }
  // To be called once the records of the context's memory have been removed. `ended_bytes`: bytes
  // of the context itself and of its memory for kernels, as ExecutionParts::context_ended() gave
  // them.
  void done(std::uint64_t ended_bytes) {
    const ErrnoGuard keep;
    if (!span_.has_begun() || !answers_for(call_, device_)) return;
    const auto taken = span_.taken();
    if (!taken) return;
    // Bytes of records were subtracted with them, in ExecutionParts::context_ended().
    const std::uint64_t after = live();
    const std::uint64_t recorded = live_before_ - std::min(live_before_, after) + ended_bytes;
    const std::int64_t rest = -*taken - static_cast<std::int64_t>(recorded);
    if (rest > 0) span_.book({.one_ended_bytes = static_cast<std::uint64_t>(rest)}, {});
  }

 private:
  // Returns the live bytes on the device, with those of streams, modules and executable graphs.
  std::uint64_t live() const {
    const ledger::Totals& totals = call_.execution().totals;
    std::uint64_t sum = totals.live_bytes_on(device_);
    for (const Kind kind : {Kind::module, Kind::stream, Kind::graph_exec})
      sum += totals.live_bytes_on(device_, kind);
    return sum;
  }

  HookedCall& call_;
  ImplicitSpan span_;
  DeviceOrdinal device_ = no_device;
  std::uint64_t live_before_ = 0;
};

// Returns cuwarden's pools that may have served memory to the program, even if nothing is recorded
// now; null if there are none.
serving::ServingPools* pools_of(HookedCall& call) {
  return call.recording() ? &call.execution().pools
                          : serving::serving_pools.load(std::memory_order_acquire);
}

// Returns the contexts of the process that are known, even if nothing is recorded now; null if none
// can be known.
const tracking::LiveContexts* contexts_of(HookedCall& call) {
  if (call.recording()) return &call.execution().contexts;
  const serving::ServingPools* const pools = pools_of(call);
  return pools == nullptr ? nullptr : &pools->contexts();
}

// While a context is being ended, keeps cuwarden's pools from serving its memory and from moving
// it. This is needed even if nothing is recorded.
class PoolsEnd {
 public:
  PoolsEnd(HookedCall& call, ContextId context) : pools_(pools_of(call)), context_(context) {
    if (pools_ != nullptr) pools_->set_ending(context_, true);
  }
  // To be called after the driver's call, unless ExecutionParts::context_ended() was called.
  void done(bool has_ended) {
    if (pools_ == nullptr) return;
    if (has_ended)
      pools_->context_ended(context_);
    else
      pools_->set_ending(context_, false);
  }

 private:
  // A thread that moves memory enters contexts, so it must not run meanwhile.
  const driver::GateScope at_the_gate_;
  serving::ServingPools* const pools_;
  const ContextId context_;
};

// Forgets the streams of a context that is about to end; of all contexts if `context` is 0. If the
// end fails, a stream becomes known again with the next free in it.
void streams_end(HookedCall& call, ContextId context = {}) {
  if (call.recording()) call.execution().streams_end(context);
}

template <class End>
CUresult ended(HookedCall& call, CUcontext context, End end) {
  streams_end(call, id_of(context));
  ContextEnd end_of(call, id_of(context));
  PoolsEnd pools(call, id_of(context));
  const CUresult result = end();
  if (!call.recording() || !has_ended(result)) return pools.done(has_ended(result)), result;
  const std::uint64_t ended_bytes = call.execution().context_ended(id_of(context));
  if (result == CUDA_SUCCESS) end_of.done(ended_bytes);
  return result;
}

void primary_ended(HookedCall& call, DeviceOrdinal device) {
  call.execution().implicit.disturb(device);
  const ContextId context = call.execution().contexts.primary_of(device);
  if (context.value != 0) call.execution().context_ended(context);
}

ContextId primary_of(HookedCall& call, CUdevice device) {
  const tracking::LiveContexts* const contexts = contexts_of(call);
  return contexts == nullptr ? ContextId{} : contexts->primary_of(DeviceOrdinal{device});
}

template <class Reset>
CUresult primary_reset(HookedCall& call, CUdevice device, Reset reset) {
  streams_end(call);
  PoolsEnd pools(call, primary_of(call, device));
  const CUresult result = reset();
  if (call.recording() && has_ended(result))
    primary_ended(call, DeviceOrdinal{device});
  else
    pools.done(has_ended(result));
  return result;
}

// A release ends the primary context only if it was the last one. While the process ends, releases
// come from cudart; they do not mean that the program released its context, and are not counted.
template <class Release>
CUresult primary_released(HookedCall& call, CUdevice device, Release release) {
  PoolsEnd pools(call, primary_of(call, device));
  const CUresult result = release();
  const bool gone = result == CUDA_SUCCESS && call.recording() &&
                    !call.execution().process_ends() &&
                    !call.execution().queries.primary_is_active(DeviceOrdinal{device});
  if (gone)
    primary_ended(call, DeviceOrdinal{device});
  else
    pools.done(false);
  return result;
}

#if CUDA_VERSION >= 12040
// Records the device's primary context, which a green context has just retained, and returns it;
// 0 if the driver does not tell.
ContextId find_primary(HookedCall& call, DeviceOrdinal device) {
  CUcontext primary = nullptr;
  if (call.real().cuDevicePrimaryCtxRetain(&primary, device.value) != CUDA_SUCCESS) return {};
  call.execution().contexts.primary_retained(device, id_of(primary));
  call.real().cuDevicePrimaryCtxRelease_v2(device.value);
  // Another thread may have destroyed the green context meanwhile; then this release was the last.
  if (!call.execution().queries.primary_is_active(device)) primary_ended(call, device);
  return call.execution().contexts.primary_of(device);
}

// Removes primary contexts that have ended with a green context whose device is not known.
void remove_ended_primaries(HookedCall& call) {
  for (std::int32_t i = 0; i < tracking::LiveContexts::device_limit; ++i) {
    const DeviceOrdinal device{i};
    if (call.execution().contexts.primary_of(device).value != 0 &&
        !call.execution().queries.primary_is_active(device))
      primary_ended(call, device);
  }
}
#endif

}  // namespace

#define OF_CONTEXT CUWARDEN_HOOK_BY
#include "runtime_hooks/driver/hooks.def"

CUresult cuDevicePrimaryCtxRetain(HookedCall& call, CUcontext* pctx, CUdevice dev) {
  const DeviceOrdinal device{dev};
  if (!call.recording() || call.execution().queries.primary_is_active(device)) {
    const CUresult result = call.real().cuDevicePrimaryCtxRetain(pctx, dev);
    if (call.recording() && result == CUDA_SUCCESS) {
      call.execution().contexts.primary_retained(device, id_of(*pctx));
      call.execution().pools.device_is_used(device);
    }
    return result;
  }
  const auto attempt = [&] {
    ContextCreation creation(call, device);
    const CUresult result = call.real().cuDevicePrimaryCtxRetain(pctx, dev);
    if (result == CUDA_SUCCESS) {
      call.execution().contexts.primary_retained(device, id_of(*pctx));
      call.execution().pools.device_is_used(device);
      creation.done(id_of(*pctx));
    }
    return result;
  };
  return call.rescued(attempt(), {ledger::Asked::context, device}, attempt);
}

#if CUDA_VERSION >= 12040
// A green context needs the device's primary context, and makes it if it is not there.
CUresult cuGreenCtxCreate(HookedCall& call, CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev,
                          unsigned int flags) {
  const DeviceOrdinal device{dev};
  const auto attempt = [&] {
    const bool makes_primary =
        call.recording() && !call.execution().queries.primary_is_active(device);
    ContextCreation creation(call, device);
    const CUresult result = call.real().cuGreenCtxCreate(phCtx, desc, dev, flags);
    if (!call.recording() || result != CUDA_SUCCESS) return result;
    const bool is_recorded = call.execution().contexts.green_created(id_of(*phCtx).value, device);
    const ContextId primary = makes_primary ? find_primary(call, device) : ContextId{};
    call.execution().pools.device_is_used(device);
    if (primary.value != 0)
      creation.done(primary);
    else if (is_recorded)
      creation.done_green(id_of(*phCtx));
    return result;
  };
  return call.rescued(attempt(), {ledger::Asked::context, device}, attempt);
}

CUresult cuCtxFromGreenCtx(HookedCall& call, CUcontext* pContext, CUgreenCtx hCtx) {
  const CUresult result = call.real().cuCtxFromGreenCtx(pContext, hCtx);
  if (call.recording() && result == CUDA_SUCCESS)
    call.execution().contexts.green_used_as(id_of(hCtx).value, id_of(*pContext));
  return result;
}

// A green context retains its device's primary context, and its end may be the last release.
CUresult cuGreenCtxDestroy(HookedCall& call, CUgreenCtx hCtx) {
  streams_end(call);
  const auto destroy = [&] { return call.real().cuGreenCtxDestroy(hCtx); };
  const std::uint64_t green = id_of(hCtx).value;
  const tracking::LiveContexts* const contexts = contexts_of(call);
  const DeviceOrdinal device = contexts == nullptr ? no_device : contexts->device_of_green(green);
  if (!call.recording()) {
    return device == no_device ? destroy() : primary_released(call, device.value, destroy);
  }
  const ExecutionParts parts = call.execution();
  if (device == no_device) {
    const CUresult result = destroy();
    if (result == CUDA_SUCCESS && !parts.process_ends()) remove_ended_primaries(call);
    return result;
  }
  parts.implicit.disturb(device);
  parts.contexts.green_destroyed(green);
  const auto ending = parts.context_memory.begin_green_end(green);
  const CUresult result = primary_released(call, device.value, destroy);
  if (has_ended(result)) return result;
  parts.contexts.green_created(green, device);
  parts.context_memory.green_not_ended(ending);
  return result;
}
#endif

CUresult cuDevicePrimaryCtxRelease(HookedCall& call, CUdevice dev) {
  streams_end(call);
  return primary_released(call, dev, [&] { return call.real().cuDevicePrimaryCtxRelease(dev); });
}

CUresult cuDevicePrimaryCtxRelease_v2(HookedCall& call, CUdevice dev) {
  streams_end(call);
  return primary_released(call, dev, [&] { return call.real().cuDevicePrimaryCtxRelease_v2(dev); });
}

}  // namespace cuwarden::hooks
