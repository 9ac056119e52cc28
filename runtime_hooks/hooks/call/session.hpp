// Owns all parts that record a process's CUDA calls, and passes on events that concern several of
// them. A session is made at the process's first CUDA call; a forked child makes its own.
#pragma once

#include <cstddef>

#include "runtime_hooks/rescue/refusals.hpp"
#include "runtime_hooks/serving/serving_pools.hpp"
#include "runtime_hooks/tracking/allocation_recorder.hpp"
#include "runtime_hooks/tracking/captures.hpp"
#include "runtime_hooks/tracking/implicit_memory.hpp"
#include "runtime_hooks/tracking/launched_kernels.hpp"
#include "runtime_hooks/tracking/memory_pools.hpp"

namespace cuwarden::hooks {

using tracking::Allocation;
using tracking::Caller;
using tracking::CurrentContext;
using tracking::ImplicitMemory;
using tracking::launched_kernels;
using tracking::loaded_kernels;

// Parts of the shim that a session calls. All outlive the session.
struct Surroundings {
  HostProcess& process;
  tracking::CompletenessListener& completeness;
  serving::NoticeWriter& notices;
  rescue::IncidentProbes& probes;
};

// The choices for a session.
struct SessionSettings {
  std::size_t stack_depth = 0;  // frames kept for each stack; 0: no stacks
  rescue::Settings ladder{};
  serving::ServingSettings serving{};
};

// All parts of a recorded process that hooks work with. One object lives as long as the recording.
class Session {
 public:
  // `ledger` and `real` outlive the object.
  Session(ledger::Writer& ledger, const driver::RealDriver& real, const Surroundings&,
          const SessionSettings&) noexcept;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  ledger::Writer& ledger;
  const driver::RealDriver& real;
  tracking::LiveContexts contexts;
  tracking::DeviceQueries queries;
  tracking::MemoryPools memory_pools;
  tracking::Captures captures;
  serving::Notices notices;
  serving::ServingPools pools;
  tracking::DeviceReadings readings;
  tracking::ImplicitMemory implicit;
  tracking::CallSites sites;
  tracking::AllocationRecorder allocations;
  rescue::Refusals refusals;

  // To be called when a hooked call begins, and when it ends.
  void call_passes() noexcept {
    if (implicit.any_span()) disturb_spans();
  }
  // To be called if a graph's node will take memory of this device.
  void graph_uses(DeviceOrdinal device) noexcept {
    memory_pools.used_on(device);
    readings.meet(device);
  }
  // To be called after a context has ended, and the memory that it owns with it.
  void context_ended(ContextId) noexcept;
  // To be called before the driver frees memory in this stream.
  void freed_in(CUstream stream) noexcept {
    if (refusals.rescues() && !refusals.pending().was_noted_last(stream))
      refusals.pending().freed_in(stream, queries.context_of(stream));
  }
  // To be called before the driver ends the stream.
  void stream_ends(CUstream) noexcept;
  // To be called before the driver ends a context; `context` is 0 if it is not known which one.
  void streams_end(ContextId context) noexcept {
    if (refusals.rescues()) refusals.pending().context_ends(context);
  }
  // To be called before the driver begins a capture. If it returns true and the driver then
  // refuses, Captures::ended() must be called.
  bool capture_begins(CUstream, bool per_thread) noexcept;
  // To be called after a stream capture was begun. Captures under way are not counted, since one
  // also ends with its stream or its context, and an end may fail. Once capture_seen() is true, the
  // driver is asked where it matters; programs that never capture are not slowed down.
  void capture_began() noexcept { capture_seen_.store(true, std::memory_order_relaxed); }
  bool capture_seen() const noexcept { return capture_seen_.load(std::memory_order_relaxed); }

  void process_is_ending() noexcept {
    ending_.store(true, std::memory_order_relaxed);
    pools.process_is_ending();
  }
  bool process_ends() const noexcept { return ending_.load(std::memory_order_relaxed); }

 private:
  void disturb_spans() noexcept;

  std::atomic<bool> ending_{false};
  std::atomic<bool> capture_seen_{false};
};

}  // namespace cuwarden::hooks
