// What the recorder does with a request that the driver refused for lack of memory.
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/families/recorder.hpp"

namespace cuwarden::families {
namespace {

// The thread's last one that was not served yet; initial-exec, as all of the shim's.
struct LastRefused {
  RefusedRequest request;
  IncidentId incident;  // 0: none
};
[[gnu::tls_model("initial-exec")]] constinit thread_local LastRefused last_refused{};

}  // namespace

// Once there was a capture, a reading may only follow a call that one forbids (recorder.hpp); that
// one was refused for lack of memory, and not for a capture, says as much as that it succeeded.
void Recorder::note_device(IncidentId incident, DeviceOrdinal device, Captures captures) noexcept {
  if (device == no_device || (capture_seen() && captures == Captures::unknown)) return;
  const bool current = place_unguarded().device == device;
  const ContextId context = current ? ContextId{} : live_context_on(device);
  if (!current) {
    if (context.value == 0 || real_.cuCtxPushCurrent_v2 == nullptr ||
        real_.cuCtxPopCurrent_v2 == nullptr ||
        real_.cuCtxPushCurrent_v2(reinterpret_cast<CUcontext>(context.value)) != CUDA_SUCCESS)
      return;
  }
  std::size_t free = 0, total = 0;
  if (real_.cuMemGetInfo_v2 != nullptr && real_.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS) {
    ledger_.set_fact(incident, ledger::Fact::total_bytes, total);
    ledger_.set_fact(incident, ledger::Fact::free_bytes, free);
    if (const auto idle = pools_.idle_bytes(real_, device))
      ledger_.set_fact(incident, ledger::Fact::pool_idle_bytes, *idle);
  }
  if (!current) {
    CUcontext popped = nullptr;
    real_.cuCtxPopCurrent_v2(&popped);
  }
}

void Recorder::refused(const RefusedRequest& request, GroupId group, CUresult result,
                       ledger::Asked asked, Captures captures) noexcept {
  const ledger::Writer::Refused refused =
      ledger_.refused({group, asked, result, ByteCount{request.bytes}});
  last_refused = {request, refused.incident};
  was_refused_.store(true, std::memory_order_relaxed);
  if (!refused.first) return;
  note_device(refused.incident, request.device, captures);
  ledger_.publish_incident(refused.incident);
  if (incident_notice_ != nullptr) incident_notice_(refused.incident);
}

void Recorder::refused(HookId api, CUresult result, ledger::Asked asked,
                       DeviceOrdinal device) noexcept {
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return;
  const ErrnoGuard keep;
  const Place here = place_unguarded();
  if (device == no_device) device = here.device;
  meet(device);
  const Kind kind = asked == ledger::Asked::graph ? Kind::graph : Kind::device;
  const GroupId group = group_unguarded(api, kind, device);
  refused({0, device, api, kind}, group, result, asked, Captures::unknown);
  give_notice();
}

[[gnu::noinline, gnu::cold]] void Recorder::served(const RefusedRequest& request) noexcept {
  if (last_refused.incident.value == 0 || last_refused.request != request) return;
  ledger_.recovered(last_refused.incident);
  last_refused.incident = {};
}

}  // namespace cuwarden::families
