// Memory that cuwarden serves in the driver's stead: when new requests come from the pool, when the
// pool gives memory back, moves it or spills to the host, and what happens to it when contexts end.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/host_process.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/pool/device_pool.hpp"
#include "runtime_hooks/pool/pinned_pool.hpp"
#include "runtime_hooks/pool/spill.hpp"
#include "runtime_hooks/serving/notices.hpp"
#include "runtime_hooks/tracking/allocation.hpp"
#include "runtime_hooks/tracking/captures.hpp"
#include "runtime_hooks/tracking/device_queries.hpp"
#include "runtime_hooks/tracking/device_readings.hpp"
#include "runtime_hooks/tracking/live_contexts.hpp"
#include "runtime_hooks/tracking/memory_pools.hpp"

namespace cuwarden::serving {

// Says when the pool serves new requests that would waste memory in the driver.
enum class PoolUse : std::uint8_t {
  never,
  when_slabs_lock,  // once the driver's slabs lock a fiftieth of the device
  from_start,
};

// The settings of the pools.
struct ServingSettings {
  PoolUse pool = PoolUse::never;
  // Longest pause for moving memory behind the program's addresses; 0: memory is not moved.
  std::uint64_t mesh_pause_ns = 0;
  pool::SpillSettings spill{};
};

// An attempt to serve a request with host memory.
struct SpillAttempt {
  // served: `address` is that of the memory, or 0 where the device has room by now and the driver
  // is to be asked again.
  ledger::RungOutcome outcome{};
  std::uint64_t address = 0;
};

// The pools of one process, and the parts of the process that they work with.
struct Pools {
  ledger::Writer& ledger;
  const driver::RealDriver& real;
  const tracking::DeviceQueries& queries;
  tracking::LiveContexts& contexts;
  tracking::Captures& captures;
  pool::Peers peers{};
  pool::DevicePool device{peers};
  pool::PinnedPool pinned{};
  pool::Spill spill;
};

// Serves requests from cuwarden's pools, and keeps the pools in step with contexts and devices.
class ServingPools final : public tracking::ReadingListener {
 public:
  // All references outlive the object.
  ServingPools(const ServingSettings& settings, HostProcess& process, ledger::Writer& ledger,
               const driver::RealDriver& real, const tracking::DeviceQueries& queries,
               tracking::LiveContexts& contexts, tracking::Captures& captures,
               tracking::MemoryPools& memory_pools, Notices& notices) noexcept
      : settings_(settings),
        process_(process),
        memory_pools_(memory_pools),
        notices_(notices),
        parts_{.ledger = ledger,
               .real = real,
               .queries = queries,
               .contexts = contexts,
               .captures = captures,
               .spill{settings.spill, parts_.peers, process}} {}

  Pools& parts() noexcept { return parts_; }

  // --- new requests
  // Serves a request of linear memory in the current context. 0: the driver is to serve it.
  std::uint64_t allocate(std::uint64_t bytes) noexcept;
  // Serves a request of page-locked memory. `flags`: those of cuMemHostAlloc; none: the request is
  // one of cuMemAllocHost. 0: the driver is to serve it.
  std::uint64_t allocate_pinned(std::uint64_t bytes, std::optional<unsigned> flags) noexcept;

  bool uses_pool() const noexcept { return settings_.pool != PoolUse::never; }

  // --- means of a rescue
  // True where the pool has, or had, memory of the device; no_device: page-locked memory.
  bool has_memory_of(DeviceOrdinal device) const noexcept {
    return device == no_device ? parts_.pinned.any() : parts_.device.any();
  }
  // Gives memory without a block back to the device, or to the host for no_device. False: there is
  // none; none: giving back is not allowed now.
  std::optional<bool> give_back_unused(DeviceOrdinal) noexcept;
  bool can_mesh() const noexcept;
  // Moves blocks together so that a request of `wanted_bytes` may be served. `served`: some memory
  // went back to the device.
  ledger::RungOutcome mesh(const tracking::CurrentContext&, std::uint64_t wanted_bytes) noexcept;
  bool can_spill(const tracking::Allocation&, const tracking::CurrentContext&,
                 DeviceOrdinal) noexcept;
  // Serves the request with host memory for what the device lacks.
  SpillAttempt spill_to_host(const tracking::Allocation&, const tracking::CurrentContext&,
                             DeviceOrdinal) noexcept;

  // --- freed memory
  // Gives back memory of the current context that the program freed during a capture, once no
  // capture is left. Memory of other contexts stays until its context is current: it may be being
  // ended where it is not. Waits for the current context.
  void free_deferred() noexcept {
    if (may_free_deferred()) free_deferred_now();
  }
  // Gives back the same memory, but only where the current context is idle: for calls that wait for
  // nothing themselves.
  void free_deferred_if_idle() noexcept {
    if (may_free_deferred() && is_idle_here()) free_deferred_now();
  }
  // Unlocks page-locked memory that is free. To be called after the device was waited for, since
  // unlocking waits for the device.
  void unlock_idle() noexcept;

  // --- contexts and devices
  // A context of the device came up. Copies that name no devices reach the driver's own memory of
  // another device from there; mapped memory is reached only where access is granted (measured).
  void device_is_used(DeviceOrdinal device) noexcept {
    if (may_serve() && !is_used(device)) grant_for(device);
  }
  // `is_ending`: true before the driver ends the context, false where the driver has not ended it.
  // Works also where nothing is recorded any more.
  void set_ending(ContextId context, bool is_ending) noexcept {
    parts_.device.set_ending(context, is_ending);
    parts_.pinned.set_ending(context, is_ending);
  }
  // To be called after the records of the context's memory are gone.
  void context_ended(ContextId) noexcept;
  // The peer may, or may no longer, use what the pools have on the device. False: not all of it.
  bool change_access(DeviceOrdinal device, DeviceOrdinal peer, bool may) noexcept;
  void device_was_read(DeviceOrdinal, std::uint64_t total_bytes) noexcept override;
  // The process is ending: writes the pools' figures down, which needs no driver, and gives nothing
  // back from then on.
  void process_is_ending() noexcept;

  // --- other processes
  // The driver made an IPC handle, or opened one.
  void shares_by_ipc() noexcept { is_shared_.store(true, std::memory_order_relaxed); }
  // The driver refused an IPC handle of this address.
  void shared_in_vain(CUdeviceptr) noexcept;
  // A handle was made of the pool's memory, by which others reach its pages.
  void memory_is_reached() noexcept { is_reached_.store(true, std::memory_order_relaxed); }

 private:
  // 0: a device that has no bit.
  static std::uint64_t bit_of(DeviceOrdinal device) noexcept {
    return device.value >= 0 && device.value < 64 ? std::uint64_t{1} << device.value : 0;
  }
  // True where memory other than the driver's may be in the program's hands, now or later.
  bool may_serve() const noexcept {
    return parts_.spill.enabled() || settings_.pool != PoolUse::never;
  }
  bool is_used(DeviceOrdinal device) const noexcept {
    return (~used_.load(std::memory_order_relaxed) & bit_of(device)) == 0;
  }
  void grant_for(DeviceOrdinal) noexcept;
  void device_is_unused(DeviceOrdinal device) noexcept {
    parts_.peers.device_ended(device);
    used_.fetch_and(~bit_of(device));
  }
  void memory_is_out() noexcept;
  template <class Allocate>
  std::uint64_t allocate_here(const Allocate&) noexcept;

  bool may_free_deferred() noexcept {
    return (parts_.spill.has_deferred() || parts_.device.deferred().any() ||
            parts_.pinned.deferred().any()) &&
           !parts_.captures.any();
  }
  bool is_idle_here() noexcept;
  void free_deferred_now() noexcept;

  bool all_are_idle(ContextId current) noexcept;
  std::optional<Notice> obstacle_met() noexcept;
  std::optional<Notice> mesh_obstacle() noexcept;
  std::optional<pool::Range> spillable(const tracking::Allocation&, const tracking::CurrentContext&,
                                       DeviceOrdinal) noexcept;
  void note_pool(DeviceOrdinal) noexcept;
  void note_pinned() noexcept;

  const ServingSettings settings_;
  HostProcess& process_;
  tracking::MemoryPools& memory_pools_;
  Notices& notices_;
  std::atomic<std::uint64_t> mesh_not_before_ns_{0};
  std::atomic<bool> is_ending_{false};
  std::atomic<bool> is_reached_{false};
  std::atomic<bool> is_shared_{false};
  std::atomic<std::uint64_t> pool_on_{0};  // a bit for each device whose new requests it serves
  std::atomic<std::uint64_t> used_{0};     // a bit for each device with a context
  // True once one of two devices cannot reach the other's mapped memory.
  std::atomic<bool> are_apart_{false};
  Pools parts_;
};

// The pools that have, or had, memory in the program's hands; null: none. Read also where nothing
// is recorded any more.
inline constinit std::atomic<ServingPools*> serving_pools{nullptr};
// True once pooled or spilled memory was handed out, or more memory is to be seen than there is:
// from then on the driver's answers about addresses and sizes are corrected.
inline constinit std::atomic<bool> answers_differ{false};

}  // namespace cuwarden::serving
