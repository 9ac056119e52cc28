// Memory that cuwarden serves instead of the driver. Decides when new requests are served from the
// pools, and when the pools give memory back, move it or spill to the host. Frees the memory of
// contexts that end.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/host_process.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/pool/device_pool.hpp"
#include "runtime_hooks/pool/pinned_pool.hpp"
#include "runtime_hooks/pool/spill.hpp"
#include "runtime_hooks/serving/notices.hpp"
#include "runtime_hooks/tracking/allocation.hpp"
#include "runtime_hooks/tracking/captures.hpp"
#include "runtime_hooks/tracking/devices/device_queries.hpp"
#include "runtime_hooks/tracking/devices/device_readings.hpp"
#include "runtime_hooks/tracking/devices/live_contexts.hpp"
#include "runtime_hooks/tracking/devices/memory_pools.hpp"

namespace cuwarden::serving {

// The time from which cuwarden's pool serves requests of sizes that waste memory in the driver:
// sizes that the driver cuts from slabs (units of 2 MiB), or rounds up much. Page-locked memory is
// served under `from_start` only.
enum class PoolUse : std::uint8_t {
  never,
  // On each device, once more than a fiftieth of its memory is locked: freed by the program, but in
  // slabs (2 MiB units of the driver) that are partly live. Never in a process that shares memory
  // by IPC handles.
  when_slabs_lock,
  from_start,
};

// Settings of the memory that cuwarden serves instead of the driver.
struct ServingSettings {
  // The time from which cuwarden's pool serves requests that waste memory in the driver.
  PoolUse pool = PoolUse::never;
  // Longest time, in nanoseconds, for which the program may be paused for one refused request, to
  // move memory behind its addresses (meshing). Several pauses may share it. 0: memory is not
  // moved.
  std::uint64_t mesh_pause_ns = 0;
  // True if each copy of moved memory (meshing) is compared with the original.
  bool verifies_meshing = false;
  // True if meshing copies blocks by a kernel, which is loaded into a context when the pool serves
  // its first request there; false: by the driver's copies.
  bool meshes_by_kernel = false;
  // True if the program is told that memory is free which meshing would free.
  bool shows_meshable = false;
  // Limits of spilling: serving requests for device memory with host memory.
  pool::SpillSettings spill{};
};

// Result of an attempt to serve a request with host memory for what the device lacks.
struct SpillAttempt {
  // `served` if host memory serves the request, or if the device has room by now; otherwise the
  // reason why it was not served.
  ledger::RungOutcome outcome{};
  // Address of the memory, if `outcome` is `served`. 0 with `served`: the device has room by now,
  // so the caller must ask the driver again.
  std::uint64_t address = 0;
};

// The pools of one process, and the parts of the process that they work with. The references
// outlive the object.
struct Pools {
  ledger::Writer& ledger;                  // gets the figures of the pools
  const driver::RealDriver& real;          // libcuda's own functions, without hooks
  const tracking::DeviceQueries& queries;  // tells the current context
  tracking::LiveContexts& contexts;        // the process's contexts that have not ended
  tracking::Captures& captures;            // stream captures in progress
  pool::Peers peers{};                     // devices that may reach each other's memory
  pool::DevicePool device;                 // device memory, cut into allocations
  pool::PinnedPool pinned{};               // page-locked host memory, cut into allocations
  pool::Spill spill;                       // allocations that are partly or wholly in host memory
};

// Serves requests from cuwarden's pools, and keeps the pools in step with contexts and devices. All
// threads may call the functions at any time.
class ServingPools final : public tracking::ReadingListener {
 public:
  // All references outlive the object. `settings` is copied. `process` tells how much memory the
  // host has free. `clock`: the clock of the pauses for meshing.
  ServingPools(const ServingSettings& settings, HostProcess& process, ledger::Writer& ledger,
               const driver::RealDriver& real, const tracking::DeviceQueries& queries,
               tracking::LiveContexts& contexts, tracking::Captures& captures,
               tracking::MemoryPools& memory_pools, Notices& notices, Clock& clock) noexcept
      : settings_(settings),
        process_(process),
        memory_pools_(memory_pools),
        notices_(notices),
        clock_(clock),
        parts_{.ledger = ledger,
               .real = real,
               .queries = queries,
               .contexts = contexts,
               .captures = captures,
               .device = pool::DevicePool(parts_.peers,
                                          settings.mesh_pause_ns != 0 && settings.meshes_by_kernel),
               .spill{settings.spill, parts_.peers, process}} {}

  // Returns the pools, and the parts of the process that they work with. They live as long as this
  // object.
  Pools& parts() noexcept { return parts_; }

  // --- New requests.

  // Serves a request for linear memory (cuMemAlloc) in the current context from cuwarden's pool.
  // Returns the address; 0 if the driver has to serve the request.
  std::uint64_t allocate(std::uint64_t bytes) noexcept;
  // Serves a request for page-locked host memory in the current context from cuwarden's pool.
  // `flags`: those of cuMemHostAlloc; null for a call of cuMemAllocHost. Returns the address; 0 if
  // the driver has to serve the request.
  std::uint64_t allocate_pinned(std::uint64_t bytes, std::optional<unsigned> flags) noexcept;

  // Returns true if the settings allow the pool to serve requests at some time.
  bool uses_pool() const noexcept { return settings_.pool != PoolUse::never; }

  // --- Ways to make room for a refused request.

  // Returns true if the pool has ever held device memory, even if only of other devices than
  // `device`. For no_device, returns true if the pool has ever held page-locked memory.
  bool has_memory_of(DeviceOrdinal device) const noexcept {
    return device == no_device ? parts_.pinned.any() : parts_.device.any();
  }
  // Gives those pages of cuwarden's pool that have no allocation back to the device; for no_device,
  // page-locked memory back to the host. Returns true if any memory was given back.
  bool give_back_unused(DeviceOrdinal) noexcept;
  // Returns the bytes of the device that cuwarden's pool holds without allocations, and that it
  // gives back before a request fails: at once, or by mesh() if that may be called.
  std::uint64_t unused_bytes(DeviceOrdinal) noexcept;
  // Returns true if mesh() may be called: the settings allow it, the pool has served device memory,
  // and the driver can tell if a context is idle. Calls that give work to devices must pass the
  // submission gate, too (SubmissionGate::is_armed()).
  bool can_mesh() const noexcept;
  // Returns the longest time, in nanoseconds, that all pauses of the program for one request may
  // last (CUWARDEN_MESH_PAUSE). 0: mesh() must not be called.
  std::uint64_t mesh_pause_ns() const noexcept { return settings_.mesh_pause_ns; }
  // Free memory of the device that a refused request needs.
  struct Wanted {
    std::uint64_t bytes = 0;
    bool is_guess = false;  // true if it is not known how much the request needs
    // True if the driver gave back device memory while it refused this request, or memory of
    // contexts that it gave back at an earlier refusal is still not taken again. The driver may
    // need such memory for copies on the device. So mesh() makes a copy before anything else, while
    // that memory is free.
    bool has_given_back = false;
  };
  // Moves memory of the pool together behind unchanged addresses, so that whole pages of the
  // current context's device become free for a refused request. `CurrentContext`: the calling
  // thread's. Pauses the program during the moves, for `pause_left_ns` nanoseconds at most, and
  // subtracts the pauses from it. Returns `served` if some memory went back to the device, or if
  // the device seems to have room: the caller then asks the driver again. `no_memory`: the device
  // has room for a guess, but it was not enough when the request was refused. `nothing_to_do`:
  // moving would not free enough; for a guess, it would free nothing. `unsafe`: a stream is
  // captured, or code may reach the memory without a hooked call. `timed_out`: the program could
  // not be paused, now or shortly before.
  ledger::RungOutcome mesh(const tracking::CurrentContext&, Wanted,
                           std::uint64_t& pause_left_ns) noexcept;
  // Returns LeftOut::none if spill_to_host() may be called for this request (`Allocation`), in this
  // current context and for this device. Otherwise returns the reason for which host memory cannot
  // serve the request.
  ledger::LeftOut spill_obstacle(const tracking::Allocation&, const tracking::CurrentContext&,
                                 DeviceOrdinal) noexcept;
  // Serves a refused request (`Allocation`) in the current context on this device: with the device
  // memory that is left, and host memory for the rest. Tells the user of the first spilled request,
  // and why a request is not spilled. To be called only if there is no
  // spill_obstacle().
  SpillAttempt spill_to_host(const tracking::Allocation&, const tracking::CurrentContext&,
                             DeviceOrdinal) noexcept;

  // --- Freed memory.

  // Frees memory of the current context that the program freed while a stream was captured, when
  // freeing was forbidden. Waits for the current context. Does nothing while any stream is
  // captured. Memory of other contexts stays until a call in which its context is current, since
  // another thread may be ending a context that is not.
  void free_deferred() noexcept {
    if (may_free_deferred()) free_deferred_now();
  }
  // Frees memory of the current context that the program freed while a stream was captured. Does
  // not wait for the device, so hooks of functions that do not wait either may call this. Does
  // nothing while any stream is captured. Does nothing, too, if the context has unfinished work, or
  // if the driver does not say within a millisecond that it has none. Returns false if nothing was
  // done; true if memory may have been freed.
  bool free_deferred_if_idle() noexcept {
    if (!may_free_deferred() || !is_idle_here()) return false;
    free_deferred_now();
    return true;
  }
  // Gives page-locked memory back to the host that has had no allocation for a second, or that
  // exceeds the 64 MiB kept for later requests. Unlocking memory waits for the device, so this
  // should be called after the device was waited for anyway. Does nothing while a stream is
  // captured.
  void unlock_idle() noexcept;

  // --- Contexts and devices.

  // Grants the device, and the other devices on which the process has a context, access to each
  // other's pool memory and spilled memory. Must be called after a context of the device was made
  // or retained. Does nothing if the device is known to have a context, or if the settings allow
  // neither pool nor spilling. Without the access, a copy between devices that needs no
  // cuCtxEnablePeerAccess for the driver's memory would fail for the pool's (measured). If the
  // access cannot be granted, the pool serves no more device memory.
  void device_is_used(DeviceOrdinal device) noexcept {
    if (may_serve() && !is_used(device)) grant_for(device);
  }
  // Marks the pools' memory of the context (`is_ending` true), so that the pools serve nothing more
  // from it; must be called before the driver ends the context. `is_ending` false removes the mark,
  // because the driver has refused to end the context. May be called even if the process records
  // nothing any more.
  void set_ending(ContextId context, bool is_ending) noexcept {
    parts_.device.set_ending(context, is_ending);
    parts_.pinned.set_ending(context, is_ending);
  }
  // Frees the pools' memory, and the spilled memory, of a context that has ended. Must be called
  // after the ledger's records of this memory were ended (Allocations::release_context()).
  void context_ended(ContextId) noexcept;
  // Allows (or forbids, if `may` is false) the device `peer` to use all pool memory and spilled
  // memory of `device`. Returns false if the driver refused it for some of the memory.
  bool change_access(DeviceOrdinal device, DeviceOrdinal peer, bool may) noexcept;
  // Gives those pages of the device's pool back that have had no allocation for a second, unless a
  // stream is captured, and writes the pool's figures to the ledger. Under
  // PoolUse::when_slabs_lock, turns the pool on for the device once more than 2 % of its
  // memory are locked: freed by the program, but in slabs that are partly live. The pool stays off
  // if the process shares memory by IPC handles. Does nothing if the settings turn the pool off.
  // Returns true if pages were given back. To be called after the device's free memory was read.
  bool device_was_read(DeviceOrdinal, const driver::DeviceReading&,
                       std::uint64_t) noexcept override;
  // Writes the pools' figures to the ledger, without calling the driver. From then on,
  // device_was_read() does nothing. Must be called when the process begins to end.
  void process_is_ending() noexcept;

  // --- Other processes.

  // Records that the program has made or opened an IPC handle; must be called after each. From then
  // on, under PoolUse::when_slabs_lock, the pool serves no new requests for device memory, since
  // its memory can have no handle.
  void shares_by_ipc() noexcept { is_shared_.store(true, std::memory_order_relaxed); }
  // Tells the user why the driver refused to make an IPC handle for this address, if the address is
  // in live device memory that cuwarden served. Also notes that in the ledger
  // (reason_pool_not_shared). Must be called after each such refusal.
  void shared_in_vain(CUdeviceptr) noexcept;
  // Records that the program has made a handle to memory of the pool, by which other processes may
  // reach the memory. From then on, no memory of the pool is moved.
  void memory_is_reached() noexcept { is_reached_.store(true, std::memory_order_relaxed); }

 private:
  // Returns the device's bit in sets of devices, such as `used_`: bit N for the ordinal N. Returns
  // 0 for ordinals outside 0 to 63, which are in no set.
  static std::uint64_t bit_of(DeviceOrdinal device) noexcept {
    return device.value >= 0 && device.value < 64 ? std::uint64_t{1} << device.value : 0;
  }
  // Returns true if the settings allow memory to be served from the pools, or to be spilled.
  bool may_serve() const noexcept {
    return parts_.spill.enabled() || settings_.pool != PoolUse::never;
  }
  // Returns true if the device is known to have a context, or if its ordinal is not from 0 to 63.
  bool is_used(DeviceOrdinal device) const noexcept {
    return (~used_.load(std::memory_order_relaxed) & bit_of(device)) == 0;
  }
  // Under PoolUse::when_slabs_lock, turns the pool on for the device if more than 2 % of its memory
  // are locked: freed by the program, but in slabs that are partly live. `total_bytes`: size of the
  // device's memory.
  void turn_on_if_slabs_lock(DeviceOrdinal, std::uint64_t total_bytes) noexcept;
  // Lets this device and all others with a context reach each other's pool memory. Adds the device
  // to `used_`, the devices with a context. If the driver refuses the access, sets `are_apart_`:
  // the pool then serves no more device memory.
  void grant_for(DeviceOrdinal) noexcept;
  // To be called after the device's last context has ended. Removes the permissions that
  // grant_for() has recorded between this device and the others, and the device's bit in used_.
  void device_is_unused(DeviceOrdinal device) noexcept {
    parts_.peers.device_ended(device);
    used_.fetch_and(~bit_of(device));
  }
  // Makes the hooks look for memory of the pools, by the global variables `serving_pools` and
  // `answers_differ`. The first call also arms the submission gate, at which calls that give work
  // to devices wait during meshing; if the settings forbid meshing, does not. Must be called before
  // the program gets memory of the pools.
  void memory_is_out() noexcept;
  // Calls allocate(device, context), a function that serves one request, with the current context's
  // device and with the context that owns memory allocated there (the primary one for a green
  // context). Returns the address from that call; 0 if the driver has to serve the request.
  template <class Allocate>
  std::uint64_t allocate_here(const Allocate&) noexcept;

  // Returns true if memory that the program freed during a stream capture is still kept, and no
  // stream is captured now.
  bool may_free_deferred() noexcept {
    return (parts_.spill.has_deferred() || parts_.device.deferred().any() ||
            parts_.pinned.deferred().any()) &&
           !parts_.captures.any();
  }
  // Returns true if the current context has no unfinished work; false also if that is not found out
  // within a millisecond.
  bool is_idle_here() noexcept;
  // Does the work of free_deferred(). No stream may be captured.
  void free_deferred_now() noexcept;

  // Returns true if no context of the process has unfinished work; false also if that cannot be
  // told, or if the current context is not recorded. The calling thread must have closed the
  // submission gate, so that no call gives work to devices meanwhile. `current`: the current
  // context.
  bool all_are_idle(ContextId current) noexcept;
  // Returns the bytes of the device that meshing would free, if the settings have the program told
  // of them (ServingSettings::shows_meshable); otherwise 0. The number may be a tenth of a second
  // old, but the pool's allocations have not shrunk by a sixteenth since. `live_bytes`: their bytes
  // on the device now.
  std::uint64_t meshable_bytes(DeviceOrdinal, std::uint64_t live_bytes) noexcept;
  // Returns the reason why memory must not be moved, as far as the program's calls have shown it;
  // null: none.
  std::optional<Notice> obstacle_met() noexcept;
  // Returns the reason why memory must not be moved: that of obstacle_met(), or that a loaded
  // library uses device memory without calls that cuwarden sees. Null if there is no reason.
  std::optional<Notice> mesh_obstacle() noexcept;
  // Returns the memory that would serve the request by spilling: size, device, context and kind,
  // without an address. Null if host memory must not serve the request.
  std::optional<pool::Range> spillable(const tracking::Allocation&, const tracking::CurrentContext&,
                                       DeviceOrdinal) noexcept;
  // Writes the pool's figures on the device to the ledger.
  void note_pool(DeviceOrdinal) noexcept;
  // Writes the pool's figures on the device to the ledger at every sixteenth request that the pool
  // serves. So a report after a kill lacks the last few requests at most.
  void note_pool_now_and_then(DeviceOrdinal) noexcept;
  // Writes the figures of the pool of pinned memory to the ledger: requests that it has served,
  // their bytes, and the bytes that it holds.
  void note_pinned() noexcept;

  // The user's choices: when to use the pool, to move memory and to spill.
  const ServingSettings settings_;
  HostProcess& process_;                 // tells the host's free memory and loaded libraries
  tracking::MemoryPools& memory_pools_;  // CUDA's own memory pools (CUmemoryPool)
  Notices& notices_;                     // writes messages to the user
  Clock& clock_;                         // measures the pauses for meshing
  // Time of clock_, in nanoseconds, before which mesh() does not pause the program again after a
  // pause in vain; 0: mesh() may pause it at any time.
  std::atomic<std::uint64_t> mesh_not_before_ns_{0};
  // Requests, modulo 16, that note_pool_now_and_then() has counted since it last wrote the pool's
  // figures to the ledger.
  std::atomic<std::uint32_t> calls_since_noted_{0};
  // Sum of the bytes that refused requests lacked, over those calls of mesh() that have saved
  // memory.
  std::atomic<std::uint64_t> mesh_needed_bytes_{0};
  // The last result of meshable_bytes().
  std::atomic<std::uint64_t> meshable_bytes_{0};
  // Time of clock_, in nanoseconds, until which the last result is told again.
  std::atomic<std::uint64_t> meshable_until_ns_{0};
  // Bytes of the pool's allocations when the last result was found.
  std::atomic<std::uint64_t> meshable_beside_bytes_{0};
  // CUDA ordinal of the last result's device; -1: there was none.
  std::atomic<std::int32_t> meshable_device_{-1};
  std::atomic<bool> is_ending_{false};  // true once the process has begun to end
  // True once the program has made a handle to memory of the pool, so that none may be moved.
  std::atomic<bool> is_reached_{false};
  // True if the process shares memory with others by IPC handles.
  std::atomic<bool> is_shared_{false};
  // Bit N is set once the pool was turned on for the device of ordinal N, which only happens under
  // PoolUse::when_slabs_lock. Bits stay set. If `is_shared_` is true, the pool serves no new
  // requests for device memory even so.
  std::atomic<std::uint64_t> pool_on_{0};
  std::atomic<std::uint64_t> used_{0};  // bit N is set if the device of ordinal N has a context
  // True once two devices of the process cannot reach each other's mapped memory. The pool then
  // serves no further requests for device memory.
  std::atomic<bool> are_apart_{false};
  Pools parts_;  // the pools, and the parts of the process that they work with
};

// The object that serves the process's requests from cuwarden's pools. Null until it has served
// memory. Stays set even if the process records nothing any more, since the program may still use
// or free the memory.
inline constinit std::atomic<ServingPools*> serving_pools{nullptr};
// True if hooks must correct the driver's answers about addresses and sizes: cuwarden has served
// memory, or tells the program of more device memory than there is.
inline constinit std::atomic<bool> answers_differ{false};

}  // namespace cuwarden::serving
