// All that one process records with, and the events that concern several parts of it at once. Made
// at the first CUDA call; a forked child makes its own.
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

struct SessionSettings {
  std::size_t stack_depth = 0;  // frames kept for each stack; 0: none
  tracking::IncompleteNotice incomplete = nullptr;
  rescue::IncidentProbes* probes = nullptr;  // may be null
  rescue::Settings ladder{};
  serving::ServingSettings serving{};
  serving::SayNotice say = nullptr;  // may be null
};

class Session {
 public:
  // `ledger` and `real` outlive the object.
  Session(ledger::Writer& ledger, const driver::RealDriver& real,
          const SessionSettings& settings) noexcept;
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

  // Every hooked call passes here, as it begins and as it ends.
  void call_passes() noexcept {
    if (implicit.any_span()) disturb_spans();
  }
  // A graph's node will take memory of this device.
  void graph_uses(DeviceOrdinal device) noexcept {
    memory_pools.used_on(device);
    readings.meet(device);
  }
  // A context came to its end, and what it owns with it.
  void context_ended(ContextId) noexcept;
  // To be called before the driver frees memory in this stream.
  void freed_in(CUstream stream) noexcept {
    if (refusals.rescues() && !refusals.pending().was_noted_last(stream))
      refusals.pending().freed_in(stream, queries.context_of(stream));
  }
  // To be called before the driver ends the stream.
  void stream_ends(CUstream) noexcept;
  // To be called before the driver ends a context; 0: whichever it is.
  void streams_end(ContextId context) noexcept {
    if (refusals.rescues()) refusals.pending().context_ends(context);
  }
  // To be called before the driver begins a capture. Returns true where Captures::ended() is to be
  // called if the capture is not begun.
  bool capture_begins(CUstream, bool per_thread) noexcept;
  // A stream capture was begun. Captures are not counted here: one also ends with its stream or its
  // context, and an end may fail. Programs that never capture are not slowed down; in all others
  // the driver is asked where it matters.
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
