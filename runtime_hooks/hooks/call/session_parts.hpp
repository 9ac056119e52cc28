// Each class holds the parts of the session that the hooks of one room use, and no others. Events
// that concern several parts are its functions. Objects are made for one use and cost nothing,
// since they are inlined. The parts live as long as the session.
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
        captures(session.captures),
        implicit(session.implicit),
        queries(session.queries),
        session_(session) {}

  ledger::Allocations& records;
  ledger::VirtualMemory& virtual_memory;
  tracking::AllocationRecorder& allocations;
  serving::ServingPools& pools;
  tracking::MemoryPools& memory_pools;
  const tracking::Captures& captures;  // captures under way; always none if rescues are off
  ImplicitMemory& implicit;
  tracking::DeviceQueries& queries;

  // Returns the context whose memory the stream's work uses. For a stream of a green context,
  // returns the device's primary context.
  ContextId owner_of(CUstream stream) const noexcept {
    return session_.contexts.owner(queries.context_of(stream));
  }
  // Returns the device of the stream's context; no_device if it is not known.
  DeviceOrdinal device_of(CUstream stream) const noexcept {
    return session_.contexts.device_of(queries.context_of(stream));
  }
  // To be called before the driver frees memory in the order of this stream. If rescues are on, the
  // stream is remembered: a refused request may then wait for the free.
  void freed_in(CUstream stream) const noexcept {
    rescue::Refusals& refusals = session_.refusals;
    if (refusals.rescues() && !refusals.pending().was_noted_last(stream))
      refusals.pending().freed_in(stream, queries.context_of(stream));
  }

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
        pools(session.pools),
        session_(session) {}

  ledger::Allocations& records;
  ledger::GroupTable& groups;
  tracking::CallSites& sites;
  tracking::Captures& captures;
  serving::ServingPools& pools;

  // Returns the context that owns the memory which a graph's launch allocates now: the current one,
  // or the primary context of its device if a green context is current.
  ContextId current_owner() const noexcept {
    return session_.contexts.owner(session_.queries.current().context);
  }
  // To be called when a graph gets a node that allocates memory of this device. From then on,
  // cuwarden reads the device and asks the driver about the device's memory pools.
  void uses(DeviceOrdinal device) const noexcept {
    session_.memory_pools.used_on(device);
    session_.readings.meet(device);
  }
  // Notes in the ledger that it is not complete, for this reason.
  void incomplete(ledger::Reason reason) const noexcept { session_.ledger.add_reason(reason); }
  // To be called before the driver begins a capture of the stream. `per_thread` is true if a null
  // stream means the calling thread's own default stream. Returns true if the capture was counted
  // as under way. Returns false if rescues are off, or if the stream is captured already or cannot
  // be captured. If the result is true and the driver then refuses the capture, the caller must
  // call Captures::ended().
  bool capture_begins(CUstream, bool per_thread) const noexcept;

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
        captures(session.captures),
        pools(session.pools),
        readings(session.readings),
        implicit(session.implicit),
        queries(session.queries),
        session_(session) {}

  ledger::Totals& totals;
  ledger::Devices& devices;
  const ledger::ProcessTime& time;
  tracking::LiveContexts& contexts;
  const tracking::Captures& captures;  // captures under way; always none if rescues are off
  serving::ServingPools& pools;
  tracking::DeviceReadings& readings;
  ImplicitMemory& implicit;
  tracking::DeviceQueries& queries;

  // True once the process has begun to end.
  bool process_ends() const noexcept { return session_.process_ends(); }
  // To be called after a context has ended. Removes the records of the memory that it owned, and
  // all that is known of the context.
  void context_ended(ContextId) const noexcept;
  // To be called before the driver destroys the stream. Refused requests then no longer wait for
  // frees in this stream, and a capture of the stream counts as ended. Does nothing if rescues are
  // off.
  void stream_ends(CUstream) const noexcept;
  // To be called before the driver ends a context with its streams. Refused requests then no longer
  // wait for frees in these streams. `context`: the context that ends; 0: unknown, so that no frees
  // in any stream of any context are waited for.
  void streams_end(ContextId context) const noexcept {
    if (session_.refusals.rescues()) session_.refusals.pending().context_ends(context);
  }

 private:
  Session& session_;
};

}  // namespace cuwarden::hooks
