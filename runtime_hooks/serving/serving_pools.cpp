#include "runtime_hooks/serving/serving_pools.hpp"

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/driver/context_idle.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/driver/submission_gate.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"

namespace cuwarden::serving {
namespace {

// The pool serves a device in mode auto once slabs lock more than this part of its memory (1/50).
constexpr std::uint64_t locked_share = 50;

}  // namespace

// Returns allocate(device, context) for the current context; 0 if the driver must be asked. It is
// asked if a capture forbids allocations: the program must see that error. It is also asked in a
// confined thread, in which the pool may make no driver calls of its own.
template <class Allocate>
std::uint64_t ServingPools::allocate_here(const Allocate& allocate) noexcept {
  if (is_confined()) return 0;
  const ErrnoGuard keep;
  std::optional<driver::RelaxedCaptures> relaxed;
  if (parts_.captures.any()) {
    relaxed.emplace(parts_.real);
    if (!*relaxed || parts_.captures.forbid_allocations(relaxed->own_mode())) return 0;
  }
  const tracking::CurrentContext here = parts_.queries.current_unguarded();
  if (here.context.value == 0 || parts_.contexts.is_green_without_primary(here.context)) return 0;
  const Uncancelled whole;
  std::uint64_t address = 0;
  try {
    address = allocate(here.device, parts_.contexts.owner(here.context));
  } catch (...) {
    return 0;
  }
  if (address != 0) memory_is_out();
  return address;
}

std::uint64_t ServingPools::allocate(std::uint64_t bytes) noexcept {
  if (!settings_.uses_pool() || !pool::DevicePool::is_wasteful(bytes) ||
      are_apart_.load(std::memory_order_relaxed))
    return 0;
  std::uint64_t serves = UINT64_MAX;  // a bit for each device
  if (settings_.pool == PoolMode::automatic)
    serves =
        is_shared_.load(std::memory_order_relaxed) ? 0 : pool_on_.load(std::memory_order_relaxed);
  if (serves == 0) return 0;
  return allocate_here([&](DeviceOrdinal device, ContextId context) -> std::uint64_t {
    if ((serves & bit_of(device)) == 0) return 0;
    const std::uint64_t address = parts_.device.allocate(parts_.real, device, context, bytes,
                                                         parts_.ledger.time.recently_ns());
    if (address != 0) note_pool_now_and_then(device);
    return address;
  });
}

// Several threads may lose a count of a call, which makes the figures no older than one more call.
void ServingPools::note_pool_now_and_then(DeviceOrdinal device) noexcept {
  constexpr std::uint32_t calls_between = 16;
  const std::uint32_t calls = calls_since_noted_.load(std::memory_order_relaxed) + 1;
  calls_since_noted_.store(calls % calls_between, std::memory_order_relaxed);
  if (calls < calls_between) return;
  if (obstacle_met()) parts_.device.meshes_no_more();
  note_pool(device);
}

// Grants access in both directions of each pair of devices. Memory that another thread maps
// meanwhile gets its access from the peers that were set before.
void ServingPools::grant_for(DeviceOrdinal device) noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  if (settings_.pool == PoolMode::on && !pool::maps_virtual_memory(parts_.real, device))
    notices_.tell_once(Notice::pool_not_supported, device, 0);
  const std::uint64_t others = used_.fetch_or(bit_of(device)) & ~bit_of(device);
  const auto grant = [&](DeviceOrdinal of, DeviceOrdinal to) {
    int can = 0;
    if (parts_.real.cuDeviceCanAccessPeer == nullptr ||
        parts_.real.cuDeviceCanAccessPeer(&can, to.value, of.value) != CUDA_SUCCESS || can == 0)
      return false;
    return !parts_.peers.set(of, to, true) || change_access(of, to, true);
  };
  for (std::int32_t other = 0; other < 64; ++other) {
    if ((others >> other & 1) == 0) continue;
    const DeviceOrdinal there{other};
    if (grant(there, device) && grant(device, there)) continue;
    are_apart_.store(true, std::memory_order_relaxed);
    if (serving_pools.load(std::memory_order_relaxed) != nullptr)
      notices_.tell_once(Notice::not_granted, there, 0);
  }
}

std::uint64_t ServingPools::allocate_pinned(std::uint64_t bytes,
                                            std::optional<unsigned> flags) noexcept {
  constexpr unsigned known_flags =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (settings_.pool != PoolMode::on || (flags.value_or(0) & ~known_flags) != 0) return 0;
  return allocate_here([&](DeviceOrdinal, ContextId context) {
    return parts_.pinned.allocate(parts_.real, context,
                                  flags.value_or(pool::PinnedPool::as_alloc_host), bytes,
                                  parts_.ledger.time.recently_ns());
  });
}

void ServingPools::memory_is_out() noexcept {
  if (serving_pools.load(std::memory_order_relaxed) != nullptr) return;
  if (settings_.longest_mesh_pause_ns() != 0 &&
      (!driver::submission_gate.arm() || !driver::can_tell_idle(parts_.real) ||
       process_.reaches_memory()))
    parts_.device.meshes_no_more();
  serving_pools.store(this, std::memory_order_release);
  answers_differ.store(true, std::memory_order_release);
}

void ServingPools::context_ended(ContextId context) noexcept {
  if (!may_serve()) return;
  const ErrnoGuard keep;
  const Uncancelled whole;
  const DeviceOrdinal device = parts_.contexts.device_of(context);
  const ContextId primary = parts_.contexts.primary_of(device);
  if (parts_.contexts.created_on(device, context).value == 0 &&
      (primary.value == 0 || primary == context))
    device_is_unused(device);
  parts_.device.context_ended(parts_.real, context);
  parts_.pinned.context_ended(context);
  parts_.spill.context_ended(parts_.real, context, [this](const pool::Range& range) {
    parts_.ledger.devices.unspilled(range.device, range.kind, ByteCount{range.host_bytes});
  });
  if (parts_.device.any() && device != no_device) note_pool(device);
  note_pinned();
}

void ServingPools::note_pinned() noexcept {
  if (!parts_.pinned.any()) return;
  ledger::Header& header = parts_.ledger.file.header();
  header.pinned_served_count.store(parts_.pinned.served_count(), std::memory_order_relaxed);
  header.pinned_served_bytes.store(parts_.pinned.served_bytes(), std::memory_order_relaxed);
  header.pinned_held_bytes.store(parts_.pinned.held_bytes(), std::memory_order_relaxed);
}

bool ServingPools::give_back_unused(DeviceOrdinal device) noexcept {
  if (!has_memory_of(device)) return false;
  const ErrnoGuard keep;
  const Uncancelled whole;
  const driver::RelaxedCaptures relaxed(parts_.real);
  if (device == no_device) return parts_.pinned.give_back(parts_.real, UINT64_MAX) != 0;
  const bool had = parts_.device.give_back(parts_.real, device, UINT64_MAX) != 0;
  if (had) note_pool(device);
  return had;
}

void ServingPools::unlock_idle() noexcept {
  if (!parts_.captures.any())
    parts_.pinned.give_back_some(parts_.real, parts_.ledger.time.recently_ns(),
                                 pool::longest_idle_ns);
}

void ServingPools::note_pool(DeviceOrdinal device) noexcept {
  const pool::ArenaCounts counts = parts_.device.counts(device);
  if (counts.served_count == 0) return;  // nothing was served, or a lock could not be taken
  parts_.ledger.devices.set_arena(device, {.held_bytes = counts.held_bytes,
                                           .live_bytes = counts.live_bytes,
                                           .served_count = counts.served_count,
                                           .served_bytes = counts.served_bytes,
                                           .returned_bytes = counts.returned_bytes,
                                           .meshed_pages = counts.meshed_pages,
                                           .meshed_bytes = counts.meshed_bytes,
                                           .pause_ns = counts.pause_ns,
                                           .pauses = counts.pauses,
                                           .plan_ns = counts.plan_ns,
                                           .prepare_ns = counts.prepare_ns,
                                           .release_ns = counts.release_ns});
}

void ServingPools::process_is_ending() noexcept {
  is_ending_.store(true, std::memory_order_relaxed);
  if (!settings_.uses_pool()) return;
  note_pinned();
  if (!parts_.device.any()) return;
  for (std::int32_t ordinal = 0; ordinal < tracking::DeviceReadings::device_limit; ++ordinal)
    note_pool(DeviceOrdinal{ordinal});
}

bool ServingPools::device_was_read(DeviceOrdinal device, const driver::DeviceReading&,
                                   std::uint64_t) noexcept {
  if (!settings_.uses_pool() || is_ending_.load(std::memory_order_relaxed)) return false;
  note_pinned();
  bool gave_back = false;
  if (parts_.device.any()) {
    const std::uint64_t now = parts_.ledger.time.recently_ns();
    if (now > pool::longest_idle_ns && !parts_.captures.any()) {
      const Uncancelled whole;
      gave_back = parts_.device.give_back(parts_.real, device, now - pool::longest_idle_ns) != 0;
    }
    note_pool(device);
  }
  return gave_back;
}

void ServingPools::interval_has_passed(DeviceOrdinal device) noexcept {
  if (settings_.pool != PoolMode::automatic || is_ending_.load(std::memory_order_relaxed) ||
      is_shared_.load(std::memory_order_relaxed) ||
      (pool_on_.load(std::memory_order_relaxed) & bit_of(device)) != 0)
    return;
  const std::uint64_t locked_bytes = parts_.ledger.allocations.slab_locked_bytes_on(device);
  if (locked_bytes == 0) return;
  const std::uint64_t total_bytes = parts_.queries.total_bytes_of(device);
  if (total_bytes == 0 || locked_bytes <= total_bytes / locked_share) return;
  if (process_.shares_memory())
    is_shared_.store(true, std::memory_order_relaxed);
  else
    pool_on_.fetch_or(bit_of(device), std::memory_order_relaxed);
}

void ServingPools::correct_memory_info(std::size_t* free, std::size_t* total) noexcept {
  if (free != nullptr && parts_.device.any())
    *free += unused_bytes(parts_.queries.current().device);
  if (parts_.spill.visible_bytes() == 0) return;
  if (free != nullptr) *free = parts_.spill.visible_free_bytes(*free);
  if (total != nullptr) *total += parts_.spill.visible_bytes();
}

bool ServingPools::change_access(DeviceOrdinal device, DeviceOrdinal peer, bool may) noexcept {
  const CUresult arenas = parts_.device.change_access(parts_.real, device, peer, may),
                 ranges = parts_.spill.change_access(parts_.real, device, peer, may);
  return arenas == CUDA_SUCCESS && ranges == CUDA_SUCCESS;
}

}  // namespace cuwarden::serving
