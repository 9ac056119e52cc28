// Memory that cuwarden serves instead of the driver. Decides when new requests are served from the
// pools, and when the pools give memory back, move it or spill to the host. Frees the memory of
// contexts that end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/host_process.hpp"
#include "runtime_hooks/core/settings/settings.hpp"
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

// Result of an attempt to serve a request with host memory in place of the device memory that is
// lacking.
struct SpillAttempt {
  // `served` if host memory serves the request, or if the device has room by now; otherwise the
  // reason why it was not served.
  ledger::RungOutcome outcome{};
  // Address of the memory, if `outcome` is `served`. 0 with `served`: the device has room by now,
  // so the caller must ask the driver again.
  std::uint64_t address = 0;
};

// The pools of one process, and the parts of the process that they work with. The objects referred
// to outlive this object.
struct Pools {
  ledger::Writer& ledger;                  // gets the figures of the pools
  const driver::RealDriver& real;          // libcuda's own functions, without hooks
  const tracking::DeviceQueries& queries;  // tells the calling thread's current context
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
  // All references outlive the object; `spill`, the limits of spilling, is copied. `settings`: the
  // user's choices. `process` tells how much memory the host has free. `clock` measures the pauses
  // for meshing and waits for the gate.
  ServingPools(const Settings& settings, const pool::SpillSettings& spill, HostProcess& process,
               ledger::Writer& ledger, const driver::RealDriver& real,
               const tracking::DeviceQueries& queries, tracking::LiveContexts& contexts,
               tracking::Captures& captures, tracking::MemoryPools& memory_pools, Notices& notices,
               Clock& clock) noexcept
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
               .device = pool::DevicePool(parts_.peers, settings.longest_mesh_pause_ns() != 0,
                                          settings.mesh.by_kernel),
               .spill{spill, parts_.peers, process}} {}

  // --- New requests.

  // Serves a request for linear memory (cuMemAlloc) in the current context from cuwarden's pool.
  // Returns the address; 0 if the driver has to serve the request.
  std::uint64_t allocate(std::uint64_t bytes) noexcept;
  // Serves a request for page-locked host memory in the current context from cuwarden's pool.
  // `flags`: those of cuMemHostAlloc; null for a call of cuMemAllocHost. Returns the address; 0 if
  // the driver has to serve the request.
  std::uint64_t allocate_pinned(std::uint64_t bytes, std::optional<unsigned> flags) noexcept;

  // Returns true if the settings allow the pool to serve requests at some time.
  bool uses_pool() const noexcept { return settings_.uses_pool(); }

  // --- Ways to make room for a refused request.

  // Returns true if the pool for this device's memory has ever held any memory. One pool serves all
  // devices, so the answer is the same for each of them. no_device: the pool of page-locked host
  // memory.
  bool has_memory_of(DeviceOrdinal device) const noexcept {
    return device == no_device ? parts_.pinned.any() : parts_.device.any();
  }
  // Gives the pool's pages without an allocation back to the device. no_device: gives unused
  // page-locked memory back to the host. Returns true if any memory was given back.
  bool give_back_unused(DeviceOrdinal) noexcept;
  // Returns true if mesh() may be called. The settings must allow it, the pool must have served
  // device memory, and the driver must be able to tell if a context is idle. All calls that give
  // work to devices must also pass the submission gate (SubmissionGate::is_armed()).
  bool can_mesh() const noexcept;
  // Returns the longest time, in nanoseconds, that all pauses for one request together may last
  // (CUWARDEN_MESH_PAUSE). 0: mesh() must not be called.
  std::uint64_t mesh_pause_ns() const noexcept { return settings_.longest_mesh_pause_ns(); }
  // Free memory of the device that a refused request needs: the argument of mesh().
  struct Wanted {
    std::uint64_t bytes = 0;  // bytes that the refused request needs
    bool is_guess = false;    // true if `bytes` is a guess, since the need is unknown
    // True if the driver gave memory back to the device to make room for this request. Also true if
    // it gave back contexts' memory at an earlier request and has not taken it again. The driver
    // may need such memory for copies on the device. So mesh() makes a copy first, while that
    // memory is still free.
    bool has_given_back = false;
  };
  // Moves memory of the pool together behind unchanged addresses, so that whole pages of the
  // current context's device become free for a refused request. `CurrentContext`: that of the
  // calling thread. Pauses the program during the moves, for `pause_left_ns` nanoseconds at most,
  // and subtracts the pauses from `pause_left_ns`. Returns `served` if some memory went back to the
  // device, or if the device seems to have room: the caller then asks the driver again.
  // `no_memory`: `Wanted::bytes` is a guess, and so much is free already; the request must need
  // more. `nothing_to_do`: moving would not free enough; for a guess, it would free nothing.
  // `unsafe`: a stream is captured, or code may reach the memory without a hooked call.
  // `timed_out`: the program could not be paused, at this time or shortly before. Tells the user
  // once of each obstacle to moving memory, and of contents that were lost or differ.
  ledger::RungOutcome mesh(const tracking::CurrentContext&, Wanted,
                           std::uint64_t& pause_left_ns) noexcept;
  // Returns LeftOut::none if spill_to_host() may be called with these arguments: the request
  // (`Allocation`), the thread's current context and the request's device. Otherwise returns the
  // reason why host memory cannot serve the request.
  ledger::LeftOut spill_obstacle(const tracking::Allocation&, const tracking::CurrentContext&,
                                 DeviceOrdinal) noexcept;
  // Serves a refused request (`Allocation`) on this device: with the device memory that is left,
  // and with host memory for the rest. `CurrentContext`: that of the calling thread. Tells the user
  // of the first spilled request, and the reason why a request is not spilled. To be called only if
  // spill_obstacle() returns LeftOut::none.
  SpillAttempt spill_to_host(const tracking::Allocation&, const tracking::CurrentContext&,
                             DeviceOrdinal) noexcept;

  // --- Freed memory.

  // Frees memory of the current context that the program freed while a stream was captured. Does
  // not wait for the device, so hooks of functions that do not wait may call this. Does nothing
  // while any stream is captured. Does nothing if the context has unfinished work, or if that is
  // not found out within a millisecond. Returns false if nothing was done; true if memory may have
  // been freed.
  bool free_deferred_if_idle() noexcept {
    if (!may_free_deferred() || !is_idle_here()) return false;
    free_deferred_now();
    return true;
  }

  // --- Figures.

  // Returns the sums of the figures of the pool's memory on the device.
  pool::ArenaCounts counts(DeviceOrdinal device) noexcept { return parts_.device.counts(device); }
  // Corrects the driver's answer about the memory of the current context's device (cuMemGetInfo).
  // Adds the pool's unused memory to the free bytes, and the host memory that counts as the
  // device's to both numbers. Null: the program has not asked for the number.
  void correct_memory_info(std::size_t* free, std::size_t* total) noexcept;

  // --- Contexts and devices.

  // Returns the process's contexts that have not ended, for hooks of calls that are not recorded.
  const tracking::LiveContexts& contexts() const noexcept { return parts_.contexts; }
  // Grants the device, and the other devices on which the process has a context, access to each
  // other's pool memory and spilled memory. Must be called after a context of the device was made
  // or retained. Does nothing if the device is known to have a context, or if the settings allow
  // neither pool nor spilling. Without the access, a copy between two devices fails for the pool's
  // memory, although the driver's memory can be copied without cuCtxEnablePeerAccess (measured). If
  // the access cannot be granted, the pool serves no more device memory. Under PoolMode::on,
  // tells the user if the device cannot map the pool's memory.
  void device_is_used(DeviceOrdinal device) noexcept {
    if (may_serve() && !is_used(device)) grant_for(device);
  }
  // Marks the context as ending (`is_ending` true), so that the pools serve no more of its memory.
  // Must be called before the driver ends the context. `is_ending` false removes the mark, because
  // the driver has refused to end the context. May be called even if the process records nothing
  // any more.
  void set_ending(ContextId context, bool is_ending) noexcept {
    parts_.device.set_ending(context, is_ending);
    parts_.pinned.set_ending(context, is_ending);
  }
  // Frees the pools' memory and the spilled memory of a context that has ended. Must be called
  // after Allocations::release_context() has ended the ledger's records of this memory.
  void context_ended(ContextId) noexcept;
  // Allows the device `peer` to use all pool memory and spilled memory of `device`, or forbids it
  // if `may` is false. Returns false if the driver refused this for some of the memory.
  bool change_access(DeviceOrdinal device, DeviceOrdinal peer, bool may) noexcept;
  // Gives those pages of the device's pool back that have had no allocation for a second, unless a
  // stream is captured. Writes the pool's figures to the ledger. Does nothing if the settings turn
  // the pool off, or once the process is ending. Returns true if pages were given back. To be
  // called after the device's free memory was read. The last argument is always 0: it is there for
  // listeners that have a reading_begins() of their own.
  bool device_was_read(DeviceOrdinal, const driver::DeviceReading&,
                       std::uint64_t) noexcept override;
  // Under PoolMode::automatic, turns the pool on for the device once more than 2 % of the device's
  // memory is locked. Locked memory was freed by the program, but lies in slabs (2 MiB units of the
  // driver) that are partly live. The pool stays off if the process shares memory by IPC handles,
  // or once the process is ending. Asks the driver for the size of the device's memory only if some
  // of it is locked.
  void interval_has_passed(DeviceOrdinal) noexcept override;
  // Writes the pools' figures to the ledger, without calling the driver. device_was_read() and
  // interval_has_passed() do nothing after this call. Must be called when the process begins to
  // end.
  void process_is_ending() noexcept;

  // --- Other processes.

  // Records that the program has made or opened an IPC handle; must be called after each. Under
  // PoolMode::automatic, the pool then serves no new requests for device memory, since its
  // memory can have no IPC handle.
  void shares_by_ipc() noexcept { is_shared_.store(true, std::memory_order_relaxed); }
  // Must be called after the driver has refused to make an IPC handle for this address. If the
  // address is in live device memory that cuwarden served, tells the user that such memory has no
  // IPC handles, and adds reason_pool_not_shared to the ledger.
  void shared_in_vain(CUdeviceptr) noexcept;
  // Records that the program has made a handle to memory of the pool, by which other processes may
  // reach the memory. No memory of the pool is moved after this call.
  void memory_is_reached() noexcept {
    is_reached_.store(true, std::memory_order_relaxed);
    parts_.device.meshes_no_more();
  }

 private:
  // Lets pool_memory.cpp find and free the memory that was served.
  friend struct PoolMemoryAccess;
  // Returns the device's bit in a set of devices, such as `used_`: bit N for the ordinal N. Returns
  // 0 for ordinals outside 0 to 63, which are in no set.
  static std::uint64_t bit_of(DeviceOrdinal device) noexcept {
    return device.value >= 0 && device.value < 64 ? std::uint64_t{1} << device.value : 0;
  }
  // Returns true if the settings allow memory to be served from the pools, or to be spilled.
  bool may_serve() const noexcept { return parts_.spill.enabled() || settings_.uses_pool(); }
  // Returns true if the process is known to have a context on the device. True, too, if the
  // device's ordinal is not from 0 to 63.
  bool is_used(DeviceOrdinal device) const noexcept {
    return (~used_.load(std::memory_order_relaxed) & bit_of(device)) == 0;
  }
  // Lets this device, and all others on which the process has a context, reach each other's pool
  // memory and spilled memory. Adds the device to `used_`, the devices with a context. If two
  // devices cannot reach each other, or the driver refuses the access, sets `are_apart_`: the pool
  // then serves no further requests for device memory. Tells the user so if it has served any
  // memory before.
  void grant_for(DeviceOrdinal) noexcept;
  // Removes the permissions that grant_for() has recorded between this device and the others, and
  // the device's bit in used_. To be called after the process's last context on the device has
  // ended.
  void device_is_unused(DeviceOrdinal device) noexcept {
    parts_.peers.device_ended(device);
    used_.fetch_and(~bit_of(device));
  }
  // Must be called before the program gets its first memory of the pools. Sets the global variables
  // `serving_pools` and `answers_differ`, by which hooks know that they must look for memory of the
  // pools. If the settings allow meshing, also arms the submission gate, at which calls that give
  // work to devices wait during meshing.
  void memory_is_out() noexcept;
  // Calls allocate(device, context), a function that serves one request and returns the address.
  // `device`: that of the current context. `context`: the context that owns memory allocated there,
  // which is the primary one for a green context. Returns the address; 0 if the driver has to serve
  // the request.
  template <class Allocate>
  std::uint64_t allocate_here(const Allocate&) noexcept;

  // Returns true if memory that the program freed during a stream capture is still kept, and no
  // stream is captured at present.
  bool may_free_deferred() noexcept {
    return (parts_.spill.has_deferred() || parts_.device.deferred().any() ||
            parts_.pinned.deferred().any()) &&
           !parts_.captures.any();
  }
  // Does the work of free_deferred_if_idle(), but first waits until the context has finished its
  // work. Memory of other contexts stays until this is called with their context current, since
  // another thread may be ending them at present.
  void free_deferred() noexcept {
    if (may_free_deferred()) free_deferred_now();
  }
  // Returns true if the current context has no unfinished work. False, too, if that is not found
  // out within a millisecond.
  bool is_idle_here() noexcept;
  // Frees memory of the current context that the program freed while a stream was captured, after
  // waiting for the context. To be called only while no stream is captured.
  void free_deferred_now() noexcept;
  // Gives page-locked memory back to the host if it has had no allocation for a second. Also gives
  // back what exceeds the 64 MiB that are kept for later requests. Waits for the device, so the
  // caller should have waited for it anyway. Does nothing while a stream is captured.
  void unlock_idle() noexcept;

  class MeshPause;

  // Returns the unused bytes that cuwarden's pool can give back to the device. Memory that was
  // mapped in one piece and holds no allocation always counts. Other unused pages count only if
  // nothing forbids mesh() at present. With MeshMode::is_visible, all memory that mesh()
  // would save counts instead, if that is more.
  std::uint64_t unused_bytes(DeviceOrdinal) noexcept;
  // Returns the bytes of the device that meshing would free; 0 if the settings do not have them
  // reported to the program (MeshMode::is_visible). Finding the number takes a while. So
  // the last result is returned again until twenty times that while has passed, or until the pool's
  // live bytes have fallen by a sixteenth. `live_bytes`: the pool's live bytes on the device at
  // present.
  std::uint64_t meshable_bytes(DeviceOrdinal, std::uint64_t live_bytes) noexcept;
  // Returns the reason why the program's calls so far forbid moving memory; null: none.
  std::optional<Notice> obstacle_met() noexcept;
  // Returns the reason why memory must not be moved; null: none. Reasons are those that
  // obstacle_met() finds; a loaded library that may use device memory without calls that cuwarden
  // sees; and a loaded object that is linked with driver functions that cuwarden does not know.
  std::optional<Notice> mesh_obstacle() noexcept;
  // Returns the bytes that the current context's device lacks for the request, with what the driver
  // keeps free besides; 0 if it has enough, or if its free memory cannot be read.
  std::uint64_t lacking_bytes(Wanted) const noexcept;
  // Returns the outcome of mesh() if no memory may be moved now: unsafe, or timed_out shortly after
  // a pause in vain. Null if it may be moved. Tells the user of an obstacle on the device.
  std::optional<ledger::RungOutcome> move_obstacle(DeviceOrdinal) noexcept;
  // Does the work of mesh() once nothing forbids it. `least` and `needed`: bytes to be saved, at
  // least and if possible. Returns `served` if any memory was saved.
  ledger::RungOutcome move_memory(const tracking::CurrentContext&, Wanted, std::uint64_t least,
                                  std::uint64_t needed, std::uint64_t& pause_left_ns) noexcept;
  // Tells the user once of each thing that went wrong when memory of the device was moved.
  void tell_of_moves(DeviceOrdinal) noexcept;
  // Moves blocks, so that unused pages in the same piece go back to the current context's device.
  // Does so only if such pages have more than 64 MiB, than a fiftieth of the device's memory, and
  // than is free. Also brings blocks back from host memory once there is room. Does nothing in a
  // confined thread, or while memory must not be moved. Looks once a second at most, pauses the
  // program for 20 ms at most, and then rests a hundred times as long. To be called after a free.
  void release_unused_of_pieces() noexcept;
  // Does the work of release_unused_of_pieces(). `now_ns`: the time on the ledger's clock.
  void release_unused_of_pieces_now(std::uint64_t now_ns) noexcept;
  // Describes the memory that spilling would give to the request (`Allocation`): size, device,
  // context, kind and memory pool, without an address. Null for a request in stream order whose
  // context, stream or memory pool does not allow host memory. Does not look at the settings.
  std::optional<pool::Range> spillable(const tracking::Allocation&, const tracking::CurrentContext&,
                                       DeviceOrdinal) noexcept;
  // Writes the pool's figures on the device to the ledger.
  void note_pool(DeviceOrdinal) noexcept;
  // Counts a request that the pool has served. At every sixteenth one, on any device, writes the
  // pool's figures on the given device to the ledger. So a report after a kill lacks the last few
  // requests at most.
  void note_pool_now_and_then(DeviceOrdinal) noexcept;
  // Writes the figures of the pool of page-locked memory to the ledger: number and bytes of the
  // requests that it has served, and the bytes that it holds.
  void note_pinned() noexcept;

  const Settings& settings_;             // the user's choices about the pool
  HostProcess& process_;                 // tells the host's free memory and the loaded libraries
  tracking::MemoryPools& memory_pools_;  // CUDA's own memory pools (CUmemoryPool)
  Notices& notices_;                     // writes messages to the user
  Clock& clock_;                         // measures the pauses for meshing and waits for the gate
  // Time of clock_, in nanoseconds, before which mesh() does not pause the program, because the
  // last pause was in vain. 0: mesh() may pause it at any time.
  std::atomic<std::uint64_t> mesh_not_before_ns_{0};
  // Time on the ledger's clock, in nanoseconds, before which release_unused_of_pieces() does
  // nothing.
  std::atomic<std::uint64_t> release_not_before_ns_{0};
  // Requests that the pool has served since note_pool_now_and_then() last wrote the pool's figures
  // to the ledger; at most 15.
  std::atomic<std::uint32_t> calls_since_noted_{0};
  // Sum of the bytes that the device lacked for refused requests, over all calls of mesh() that
  // freed memory for a known need. Later calls free as much in advance if that needs no pause.
  std::atomic<std::uint64_t> mesh_needed_bytes_{0};
  // The last result that meshable_bytes() has found.
  std::atomic<std::uint64_t> meshable_bytes_{0};
  // Time of clock_, in nanoseconds, until which meshable_bytes() returns its last result again.
  std::atomic<std::uint64_t> meshable_until_ns_{0};
  // The pool's live bytes on the device when meshable_bytes() found its last result.
  std::atomic<std::uint64_t> meshable_beside_bytes_{0};
  // CUDA ordinal of the device of meshable_bytes()'s last result; -1: there was none.
  std::atomic<std::int32_t> meshable_device_{-1};
  std::atomic<bool> is_ending_{false};  // true once the process has begun to end
  // True once the program has made a handle by which other processes may reach the pool's memory.
  // No memory of the pool may then be moved.
  std::atomic<bool> is_reached_{false};
  // True once the process is known to share memory with others by IPC handles.
  std::atomic<bool> is_shared_{false};
  // Bit N is set once the pool was turned on for the device of ordinal N. This only happens under
  // PoolMode::automatic. Bits stay set, but if `is_shared_` is true, the pool serves no new
  // requests for device memory.
  std::atomic<std::uint64_t> pool_on_{0};
  // Bit N is set while the process is known to have a context on the device of ordinal N.
  std::atomic<std::uint64_t> used_{0};
  // True once two devices of the process were found that cannot reach each other's mapped memory.
  // The pool then serves no further requests for device memory.
  std::atomic<bool> are_apart_{false};
  Pools parts_;  // the pools, and the parts of the process that they work with
};

// The object that serves the process's requests from cuwarden's pools. Null before it serves memory
// for the first time. Stays set even if the process records nothing any more, since the program may
// still use or free the memory.
inline constinit std::atomic<ServingPools*> serving_pools{nullptr};
// True if hooks must correct the driver's answers about addresses and sizes: cuwarden has served
// memory, or tells the program of more device memory than there is.
inline constinit std::atomic<bool> answers_differ{false};

}  // namespace cuwarden::serving
