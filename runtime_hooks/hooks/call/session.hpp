// Owns all parts that record a process's CUDA calls. A session is made when recording starts,
// usually at the process's first CUDA call; a forked child makes its own.
#pragma once

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/settings/settings.hpp"
#include "runtime_hooks/rescue/refusals.hpp"
#include "runtime_hooks/serving/serving_pools.hpp"
#include "runtime_hooks/tracking/allocation_recorder.hpp"
#include "runtime_hooks/tracking/captures.hpp"
#include "runtime_hooks/tracking/context_memory.hpp"
#include "runtime_hooks/tracking/devices/memory_pools.hpp"
#include "runtime_hooks/tracking/devices/neighbours.hpp"
#include "runtime_hooks/tracking/handle_set.hpp"
#include "runtime_hooks/tracking/implicit_memory.hpp"
#include "runtime_hooks/tracking/implicit_objects.hpp"

namespace cuwarden::hooks {

using tracking::Allocation;
using tracking::Caller;
using tracking::CurrentContext;
using tracking::ImplicitMemory;
using tracking::launched_kernels;
using tracking::loaded_kernels;
using tracking::submitted_graphs;

// Parts of the shim that a Session (the recording of a process's CUDA calls) calls, and limits that
// the shim has found out. The parts outlive the Session.
struct Surroundings {
  HostProcess& process;  // The process that cuwarden is loaded into.
  // Listener that is called at most once for each reason for which the ledger lacks entries: a
  // table is full, or recording has stopped.
  tracking::CompletenessListener& completeness;
  serving::NoticeWriter& notices;  // Writes messages to the user.
  // Probes that add facts from outside CUDA (host, NVML) to the record of a refused request.
  rescue::IncidentProbes& probes;
  // The clock that measures time and waits while refused requests are served. Tests replace it.
  Clock& clock = system_clock;
  // Lists the processes with memory on a device (NVML). Null: they cannot be listed.
  tracking::HolderList* holders = nullptr;
  // The registered functions of the program that empty caches. Null: none can be registered.
  rescue::Reclaimers* reclaimers = nullptr;
  // Limits of spilling (host memory behind device addresses), on this host.
  pool::SpillSettings spill{};
};

// Owns all parts that record a process's CUDA calls. It is made when recording starts, usually at
// the process's first CUDA call, and is never destroyed. A forked child makes its own.
class Session {
 public:
  // The ledger, the driver's functions and all objects that `Surroundings` refers to outlive the
  // session. The settings are copied.
  Session(ledger::Writer& ledger, const driver::RealDriver& real, const Surroundings&,
          const Settings&) noexcept;

  const Settings settings;  // the user's choices
  // The ledger, the file that gets all records. It belongs to the caller of the constructor.
  ledger::Writer& ledger;
  // The driver's own functions, which belong to the caller of the constructor.
  const driver::RealDriver& real;
  // The process's contexts that have not ended. The session owns this and the parts below. Each
  // part may depend on those above it.
  tracking::LiveContexts contexts;
  // Asks the driver about contexts, streams, pointers and devices.
  tracking::DeviceQueries queries;
  tracking::MemoryPools memory_pools;  // CUDA's memory pools (CUmemoryPool) of this process
  tracking::Captures captures;         // stream captures in progress
  serving::Notices notices;            // writes messages to the user, each kind once
  serving::ServingPools pools;         // cuwarden's own pools, which serve requests
  tracking::DeviceReadings readings;   // reads how full devices are
  tracking::Neighbours neighbours;     // other processes that may change a device's memory
  // Measures device memory that calls take without being asked for it: for contexts, code, streams.
  tracking::ImplicitMemory implicit;
  tracking::CallSites sites;  // walks call stacks
  // Records contexts, and the memory that the driver takes for kernels: local memory, device heap.
  tracking::ContextMemory context_memory;
  tracking::ImplicitObjects objects;         // records streams, modules and executable graphs
  tracking::AllocationRecorder allocations;  // records allocations and frees
  rescue::Refusals refusals;                 // counts refused requests and tries to serve them

  // Counts a hooked driver call that begins in the calling thread. `hook`: the called function.
  // Invalidates the measurements (spans) that are under way on the current device, since the call
  // may change the device's memory; without a current device, those on all devices.
  void call_begins(HookId hook) noexcept {
    ledger.thread_shards.call_begins(hook, implicit.next_span());
    if (implicit.any_span()) disturb_spans();
  }
  // Counts the call of call_begins() as ended, and invalidates the same measurements (spans) once
  // more. Unless `keeps_bases` is true, also forgets the bases of all devices: the readings of free
  // memory by which later calls are measured.
  void call_ends(bool keeps_bases) noexcept {
    if (implicit.any_span()) disturb_spans();
    if (!keeps_bases) implicit.bases.memory_may_change();
    ledger.thread_shards.call_ends();
  }
  // Prepares the session for the end of the process: writes the figures of cuwarden's pools to the
  // ledger, and makes process_ends() true. From then on, readings of devices do not make cuwarden's
  // pools give unused pages back to the driver. NVML is not asked either which processes use a
  // device, except for the last readings (Neighbours::set_asks_at_exit()). To be called when the
  // process begins to end, before the driver is shut down.
  void process_is_ending() noexcept {
    ending_.store(true, std::memory_order_relaxed);
    neighbours.process_is_ending();
    pools.process_is_ending();
  }
  // True once the process has begun to end: process_is_ending() was called.
  bool process_ends() const noexcept { return ending_.load(std::memory_order_relaxed); }

 private:
  // Invalidates all measurements (spans) that are under way on the current device, because another
  // call may change the device's memory. Without a current device, invalidates the measurements on
  // all devices.
  void disturb_spans() noexcept;

  std::atomic<bool> ending_{false};  // true once process_is_ending() was called
};

}  // namespace cuwarden::hooks
