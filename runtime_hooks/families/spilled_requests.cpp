// Requests that the device has no room for, served with the host's memory.
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/families/recorder.hpp"

namespace cuwarden::families {

void Recorder::tell_once(RescueNews news, DeviceOrdinal device, std::uint64_t bytes,
                         std::uint64_t host_bytes) noexcept {
  const std::uint32_t bit = 1u << static_cast<unsigned>(news);
  if (rescue_notice_ != nullptr && (told_.fetch_or(bit, std::memory_order_relaxed) & bit) == 0)
    rescue_notice_(news, device, bytes, host_bytes);
}

void Recorder::shared_in_vain(CUdeviceptr address) noexcept {
  const ErrnoGuard keep;
  if (const auto range = spill_.ranges().around(address)) {
    ledger_.add_reason(ledger::reason_pool_not_shared);
    tell_once(RescueNews::not_shared, range->device, range->bytes, range->host_bytes);
  } else if (const auto placed = pool_.around(address)) {
    ledger_.add_reason(ledger::reason_pool_not_shared);
    tell_once(RescueNews::pool_not_shared, placed->arena->device(), placed->block.bytes, 0);
  }
}

// Stream-ordered memory: not of a pool that other processes can open, or that has a limit of its
// own; not of another device's stream. Ours ends with its context, as the driver's does not: then
// only a primary one's will do, which lives as long as the program has to do with the device.
std::optional<pool::Range> Recorder::spillable(const Allocation& asked_for, const Place& here,
                                               DeviceOrdinal device) noexcept {
  const ContextId owner = contexts_.owner(here.context);
  pool::Range wanted{
      .bytes = asked_for.bytes, .device = device, .context = owner, .kind = asked_for.kind};
  if (asked_for.kind != Kind::stream_ordered) return wanted;
  CUmemoryPool from = asked_for.memory_pool;
  if (from == nullptr && (real_.cuDeviceGetMemPool == nullptr ||
                          real_.cuDeviceGetMemPool(&from, device.value) != CUDA_SUCCESS))
    return std::nullopt;
  if (owner != contexts_.primary_of(device) ||
      contexts_.owner(context_of(asked_for.stream)) != owner ||
      !pools_.is_plain(real_, device, from))
    return std::nullopt;
  wanted.memory_pool = reinterpret_cast<std::uint64_t>(from);
  return wanted;
}

rescue::RungOutcome Recorder::spill_to_host(const Allocation& asked_for, const Place& here,
                                            DeviceOrdinal device, FunctionRef<CUresult()> request,
                                            const PlaceElsewhere& place) {
  using rescue::RungOutcome;
  const Uncancelled whole;
  free_deferred_if_idle();
  if (captures_.any()) return RungOutcome::unsafe;
  // Whose memory it would be is not known.
  if (contexts_.is_green_without_primary(here.context)) return RungOutcome::nothing_to_do;
  const auto wanted = spillable(asked_for, here, device);
  if (!wanted) return RungOutcome::nothing_to_do;
  pool::SpillTrouble trouble{};
  std::optional<pool::Range> range;
  try {
    range = spill_.allocate(real_, *wanted, trouble);
  } catch (...) {
    return RungOutcome::failed;
  }
  if (range) {
    memory_is_out();
    if (range->host_bytes != 0) {
      ledger_.spilled(device, range->kind, ByteCount{range->host_bytes});
      tell_once(RescueNews::spilled, device, asked_for.bytes, range->host_bytes);
    }
    place(range->start);
    return RungOutcome::served;
  }
  switch (trouble) {
    case pool::SpillTrouble::not_needed:
      return request() == CUDA_SUCCESS ? RungOutcome::served : RungOutcome::no_memory;
    case pool::SpillTrouble::too_small:
      return RungOutcome::nothing_to_do;
    case pool::SpillTrouble::cap_reached:
      tell_once(RescueNews::cap_reached, device, asked_for.bytes, 0);
      return RungOutcome::no_memory;
    case pool::SpillTrouble::host_is_full:
      tell_once(RescueNews::host_is_full, device, asked_for.bytes, 0);
      return RungOutcome::no_memory;
    case pool::SpillTrouble::not_supported:
      tell_once(RescueNews::not_supported, device, asked_for.bytes, 0);
      return RungOutcome::failed;
    case pool::SpillTrouble::driver_refused:
      break;
  }
  tell_once(RescueNews::refused, device, asked_for.bytes, 0);
  return RungOutcome::failed;
}

}  // namespace cuwarden::families
