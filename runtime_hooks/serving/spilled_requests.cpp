// Requests for which the device has no room, and which host memory serves.
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/serving/serving_pools.hpp"

namespace cuwarden::serving {

void ServingPools::shared_in_vain(CUdeviceptr address) noexcept {
  const ErrnoGuard keep;
  if (const auto range = parts_.spill.ranges().around(address)) {
    parts_.ledger.file.add_reason(ledger::reason_pool_not_shared);
    notices_.tell_once(Notice::not_shared, range->device, range->bytes, range->host_bytes);
  } else if (const auto found = parts_.device.around(address)) {
    parts_.ledger.file.add_reason(ledger::reason_pool_not_shared);
    notices_.tell_once(Notice::pool_not_shared, found->arena->device(), found->block.bytes);
  }
}

// Returns the range that would serve the request; none if host memory must not. It must not serve
// stream-ordered memory of another device's stream, or of a memory pool that other processes can
// open or that has a limit. Spilled memory ends with its context, while the driver's stream-ordered
// memory does not. So the context must be a primary one, which lives as long as the program uses
// the device.
std::optional<pool::Range> ServingPools::spillable(const tracking::Allocation& asked_for,
                                                   const tracking::CurrentContext& here,
                                                   DeviceOrdinal device) noexcept {
  const ContextId owner = parts_.contexts.owner(here.context);
  pool::Range wanted{
      .bytes = asked_for.bytes, .device = device, .context = owner, .kind = asked_for.kind};
  if (asked_for.kind != Kind::stream_ordered) return wanted;
  CUmemoryPool from = asked_for.memory_pool;
  if (from == nullptr && (parts_.real.cuDeviceGetMemPool == nullptr ||
                          parts_.real.cuDeviceGetMemPool(&from, device.value) != CUDA_SUCCESS))
    return std::nullopt;
  if (owner != parts_.contexts.primary_of(device) ||
      parts_.contexts.owner(parts_.queries.context_of(asked_for.stream)) != owner ||
      !memory_pools_.is_plain(parts_.real, device, from))
    return std::nullopt;
  wanted.memory_pool = reinterpret_cast<std::uint64_t>(from);
  return wanted;
}

ledger::LeftOut ServingPools::spill_obstacle(const tracking::Allocation& asked_for,
                                             const tracking::CurrentContext& here,
                                             DeviceOrdinal device) noexcept {
  using ledger::LeftOut;
  if (asked_for.bytes <= pool::Spill::largest_shared_bytes) return LeftOut::too_small;
  if (!parts_.spill.enabled()) return LeftOut::turned_off;
  if (device != here.device) return LeftOut::other_device;
  return spillable(asked_for, here, device) ? LeftOut::none : LeftOut::memory_pool;
}

SpillAttempt ServingPools::spill_to_host(const tracking::Allocation& asked_for,
                                         const tracking::CurrentContext& here,
                                         DeviceOrdinal device) noexcept {
  using ledger::RungOutcome;
  const Uncancelled whole;
  const driver::RelaxedCaptures relaxed(parts_.real);
  free_deferred_if_idle();
  // The context that would own the memory is unknown.
  if (parts_.contexts.is_green_without_primary(here.context)) return {RungOutcome::nothing_to_do};
  const auto wanted = spillable(asked_for, here, device);
  if (!wanted) return {RungOutcome::nothing_to_do};
  pool::SpillFailure failure{};
  std::optional<pool::Range> range;
  try {
    range = parts_.spill.allocate(parts_.real, *wanted, failure);
  } catch (...) {
    return {RungOutcome::failed};
  }
  if (range) {
    memory_is_out();
    if (range->host_bytes != 0) {
      parts_.ledger.devices.spilled(device, range->kind, ByteCount{range->host_bytes});
      notices_.tell_once(Notice::spilled, device, asked_for.bytes, range->host_bytes);
    }
    return {RungOutcome::served, range->start};
  }
  switch (failure) {
    case pool::SpillFailure::not_needed:
      return {RungOutcome::served};
    case pool::SpillFailure::too_small:
      return {RungOutcome::nothing_to_do};
    case pool::SpillFailure::cap_reached:
      notices_.tell_once(Notice::cap_reached, device, asked_for.bytes);
      return {RungOutcome::no_memory};
    case pool::SpillFailure::host_is_full:
      notices_.tell_once(Notice::host_is_full, device, asked_for.bytes);
      return {RungOutcome::no_memory};
    case pool::SpillFailure::not_supported:
      notices_.tell_once(Notice::not_supported, device, asked_for.bytes);
      return {RungOutcome::failed};
    case pool::SpillFailure::driver_refused:
      break;
  }
  notices_.tell_once(Notice::refused, device, asked_for.bytes);
  return {RungOutcome::failed};
}

}  // namespace cuwarden::serving
