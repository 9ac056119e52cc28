// Each class holds the parts of the session that the hooks of one room use, and no others. Objects
// are made for one use and cost nothing, since they are inlined. The parts live as long as the
// session.
#pragma once

#include "runtime_hooks/hooks/call/session.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::hooks {

// For calls that allocate, free, share or describe memory.
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

  // Returns the context whose memory a stream's work uses: a green context's work uses its
  // device's primary context.
  ContextId owner_of(CUstream stream) const noexcept {
    return session_.contexts.owner(queries.context_of(stream));
  }
  DeviceOrdinal device_of(CUstream stream) const noexcept {
    return session_.contexts.device_of(queries.context_of(stream));
  }
  bool capture_seen() const noexcept { return session_.capture_seen(); }
  bool any_capture() const noexcept { return session_.captures.any(); }
  void freed_in(CUstream stream) const noexcept { session_.freed_in(stream); }

 private:
  Session& session_;
};

// For calls that make graphs, launch them, or capture streams.
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

  // Returns the context that owns what a launch allocates now.
  ContextId current_owner() const noexcept {
    return session_.contexts.owner(session_.queries.current().context);
  }
  void uses(DeviceOrdinal device) const noexcept { session_.graph_uses(device); }
  void incomplete(ledger::Reason reason) const noexcept { session_.ledger.add_reason(reason); }
  // These three are Session's, and are described there.
  bool capture_begins(CUstream stream, bool per_thread) const noexcept {
    return session_.capture_begins(stream, per_thread);
  }
  void capture_began() const noexcept { session_.capture_began(); }
  void free_deferred_if_idle() const noexcept { session_.pools.free_deferred_if_idle(); }

 private:
  Session& session_;
};

// For contexts, streams, modules, kernels: calls that take memory without being asked for it.
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

  bool capture_seen() const noexcept { return session_.capture_seen(); }
  bool process_ends() const noexcept { return session_.process_ends(); }
  // These three are Session's, and are described there.
  void context_ended(ContextId context) const noexcept { session_.context_ended(context); }
  void stream_ends(CUstream stream) const noexcept { session_.stream_ends(stream); }
  void streams_end(ContextId context) const noexcept { session_.streams_end(context); }

 private:
  Session& session_;
};

}  // namespace cuwarden::hooks
