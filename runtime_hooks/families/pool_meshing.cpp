// When memory is moved behind the program's addresses, so that what the pool has comes to lie in
// fewer pages: only where a request fails otherwise, with every device quiet and nobody submitting.
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/driver/inside_context.hpp"
#include "runtime_hooks/driver/submission_gate.hpp"
#include "runtime_hooks/families/recorder.hpp"

namespace cuwarden::families {
namespace {

// What the driver needs besides for a request, and does not hand out.
constexpr std::uint64_t driver_share = std::uint64_t{16} << 20;
constexpr std::uint64_t between_pauses_ns = 20'000'000;

// Whether all that was submitted to the current context, in whatever stream, was done by then.
bool is_quiet([[maybe_unused]] const driver::RealDriver& real, [[maybe_unused]] ContextId context,
              [[maybe_unused]] std::uint64_t deadline_ns) noexcept {
#if CUDA_VERSION >= 12050
  if (real.cuCtxRecordEvent == nullptr || real.cuEventCreate == nullptr ||
      real.cuEventQuery == nullptr || real.cuEventDestroy_v2 == nullptr)
    return false;
  CUevent event = nullptr;
  if (real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return false;
  CUresult state = real.cuCtxRecordEvent(reinterpret_cast<CUcontext>(context.value), event);
  if (state == CUDA_SUCCESS)
    while ((state = real.cuEventQuery(event)) == CUDA_ERROR_NOT_READY &&
           rescue::now_ns() < deadline_ns)
      rescue::sleep_ns(20'000);
  real.cuEventDestroy_v2(event);
  return state == CUDA_SUCCESS;
#else
  return false;
#endif
}

}  // namespace

// Peers may be at work on the device's memory, from contexts of theirs.
bool Recorder::all_is_quiet(ContextId current, std::uint64_t deadline_ns) noexcept {
  return contexts_.all_of([&](ContextId context) {
    const driver::Inside inside(real_, context, current);
    return inside && is_quiet(real_, context, deadline_ns);
  });
}

// What reaches memory without a call that passes the gate must not be there: other processes,
// network cards and video engines by way of libraries that know the addresses, functions of a
// driver that is newer than this one's list, and captures, which must not be disturbed.
bool Recorder::may_mesh() noexcept {
  return mesh_pause_ns_ != 0 && pool_.any() && driver::submission_gate.is_armed() &&
         !captures_.any() && ledger_.unhooked_lookups() == 0 && reaches_memory_ != nullptr &&
         !reaches_memory_();
}

bool Recorder::mesh_pool(const Place& here, std::uint64_t wanted_bytes) noexcept {
  if (!may_mesh()) return false;
  const ErrnoGuard keep;
  const Uncancelled whole;
  const auto lacking = [&]() -> std::uint64_t {
    const auto reading = driver::read_current_device(real_);
    const std::uint64_t wanted = wanted_bytes + driver_share;
    return !reading || reading->free_bytes >= wanted ? 0 : wanted - reading->free_bytes;
  };
  std::uint64_t begun_ns = 0, deadline_ns = 0;
  const auto begin = [&] {
    // Others are to get on with their work.
    if (begun_ns != 0) rescue::sleep_ns(between_pauses_ns);
    begun_ns = rescue::now_ns();
    deadline_ns = begun_ns + mesh_pause_ns_;
    if (!driver::submission_gate.close(deadline_ns)) return false;
    if (!captures_.any() && all_is_quiet(here.context, deadline_ns)) return true;
    driver::submission_gate.open();
    return false;
  };
  const auto is_over = [&] { return rescue::now_ns() >= deadline_ns; };
  const auto end = [&] {
    driver::submission_gate.open();
    return rescue::now_ns() - begun_ns;
  };
  bool any = false;
  // What was submitted long before is waited for outside of a pause.
  const std::uint64_t quiet_by_ns = rescue::now_ns() + ladder_.sync_timeout_ns();
  for (std::uint64_t needed = lacking(), gained = 1; needed != 0 && gained != 0;
       needed = lacking()) {
    if (!all_is_quiet(here.context, quiet_by_ns)) break;
    gained = pool_.mesh(real_, here.device, {begin, is_over, end}, needed);
    any = any || gained != 0;
  }
  if (any) note_pool(here.device);
  if (pool_.counts(here.device).lost_bytes != 0)
    tell_once(RescueNews::lost, here.device, pool_.counts(here.device).lost_bytes, 0);
  return any;
}

// What the pools keep, and where that is not enough and `may_pause`, what meshing saves.
std::optional<bool> Recorder::make_room(const Place& here, DeviceOrdinal device,
                                        std::uint64_t bytes, bool may_pause) noexcept {
  const auto emptied = empty_pool(device);
  if (!emptied || device == no_device || device != here.device || !may_pause) return emptied;
  return mesh_pool(here, bytes) || *emptied;
}

}  // namespace cuwarden::families
