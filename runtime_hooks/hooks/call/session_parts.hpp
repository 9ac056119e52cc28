// Each class holds the parts of the session that the hooks of one room use, and no others. Objects
// are made for one use and cost nothing, since they are inlined. The parts live as long as the
// session.
#pragma once

#include "runtime_hooks/hooks/call/session.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::hooks {

// The parts of a session for hooks of calls that allocate, free, share or describe memory. Made for
// one use; the parts live as long as the session.
class MemoryParts {
 public:
  explicit MemoryParts(Session& session) noexcept
      : records(session.ledger.allocations),
        virtual_memory(session.ledger.virtual_memory),
        allocations(session.allocations),
        pools(session.pools),
        memory_pools(session.memory_pools),
        implicit(session.implicit),
        queries(session.queries),
        session_(session) {}

  ledger::Allocations& records;
  ledger::VirtualMemory& virtual_memory;
  tracking::AllocationRecorder& allocations;
  serving::ServingPools& pools;
  tracking::MemoryPools& memory_pools;
  ImplicitMemory& implicit;
  tracking::DeviceQueries& queries;

  // Returns the context whose memory the stream's work uses. For a stream of a green context that
  // is the device's primary context.
  ContextId owner_of(CUstream stream) const noexcept {
    return session_.contexts.owner(queries.context_of(stream));
  }
  // Returns the device of the stream's context; no_device if it is not known.
  DeviceOrdinal device_of(CUstream stream) const noexcept {
    return session_.contexts.device_of(queries.context_of(stream));
  }
  // True once a stream capture was begun in the process.
  bool capture_seen() const noexcept { return session_.capture_seen(); }
  // True if a stream capture that hooks saw begin is in progress in the process. Always false if
  // rescues are off.
  bool any_capture() const noexcept { return session_.captures.any(); }
  // To be called before the driver frees memory in the order of this stream; see
  // Session::freed_in().
  void freed_in(CUstream stream) const noexcept { session_.freed_in(stream); }

 private:
  Session& session_;
};

// The parts of a session for hooks of calls that make graphs, launch them or capture streams. Made
// for one use; the parts live as long as the session.
class GraphParts {
 public:
  explicit GraphParts(Session& session) noexcept
      : records(session.ledger.allocations),
        groups(session.ledger.groups),
        sites(session.sites),
        captures(session.captures),
        session_(session) {}

  ledger::Allocations& records;
  ledger::GroupTable& groups;
  tracking::CallSites& sites;
  tracking::Captures& captures;

  // Returns the context that owns the memory which a graph's launch allocates now: the current one,
  // or the primary context of its device if a green context is current.
  ContextId current_owner() const noexcept {
    return session_.contexts.owner(session_.queries.current().context);
  }
  // To be called when a graph gets a node that allocates memory of this device.
  void uses(DeviceOrdinal device) const noexcept { session_.graph_uses(device); }
  // Notes in the ledger that it is not complete, for this reason.
  void incomplete(ledger::Reason reason) const noexcept { session_.ledger.add_reason(reason); }
  // To be called before the driver begins a capture of the stream; see Session::capture_begins().
  bool capture_begins(CUstream stream, bool per_thread) const noexcept {
    return session_.capture_begins(stream, per_thread);
  }
  // To be called after the driver has begun a stream capture.
  void capture_began() const noexcept { session_.capture_began(); }
  // Frees memory of cuwarden's pools whose free was put off during a capture, if the device is
  // idle. To be called after a capture has ended.
  void free_deferred_if_idle() const noexcept { session_.pools.free_deferred_if_idle(); }

 private:
  Session& session_;
};

// The parts of a session for hooks of contexts, streams, modules and kernels: calls that take
// device memory without being asked for it. Made for one use; the parts live as long as the
// session.
class ExecutionParts {
 public:
  explicit ExecutionParts(Session& session) noexcept
      : totals(session.ledger.totals),
        devices(session.ledger.devices),
        time(session.ledger.time),
        contexts(session.contexts),
        pools(session.pools),
        readings(session.readings),
        implicit(session.implicit),
        queries(session.queries),
        session_(session) {}

  ledger::Totals& totals;
  ledger::Devices& devices;
  const ledger::ProcessTime& time;
  tracking::LiveContexts& contexts;
  serving::ServingPools& pools;
  tracking::DeviceReadings& readings;
  ImplicitMemory& implicit;
  tracking::DeviceQueries& queries;

  // True once a stream capture was begun in the process.
  bool capture_seen() const noexcept { return session_.capture_seen(); }
  // True once the process has begun to end.
  bool process_ends() const noexcept { return session_.process_ends(); }
  // To be called after a context has ended; see Session::context_ended().
  void context_ended(ContextId context) const noexcept { session_.context_ended(context); }
  // To be called before the driver destroys the stream; see Session::stream_ends().
  void stream_ends(CUstream stream) const noexcept { session_.stream_ends(stream); }
  // To be called before the driver ends a context with its streams. `context` is 0 if it is not
  // known which one ends; see Session::streams_end().
  void streams_end(ContextId context) const noexcept { session_.streams_end(context); }

 private:
  Session& session_;
};

}  // namespace cuwarden::hooks
