// Each class holds the parts of a Session (the recording of a process's CUDA calls) that the hooks
// in one folder use, and no others. Events that concern several parts are its functions. Objects
// are made for one use and cost nothing, since they are inlined. The parts live as long as the
// Session.
#pragma once

#include "runtime_hooks/hooks/call/session.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::hooks {

// The parts of a Session (the recording of a process's CUDA calls) for hooks of calls that
// allocate, free, share or describe memory. Made for one use; the parts live as long as the
// Session.
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

  ledger::Allocations& records;               // the ledger's records of allocations
  ledger::VirtualMemory& virtual_memory;      // the ledger's records of cuMemCreate and cuMemMap
  tracking::AllocationRecorder& allocations;  // records allocations and frees
  serving::ServingPools& pools;               // cuwarden's own pools, which serve requests
  tracking::MemoryPools& memory_pools;        // CUDA's memory pools (CUmemoryPool)
  // The stream captures under way; always none if cuwarden does not try to serve refused requests.
  const tracking::Captures& captures;
  // Measures device memory that calls take without being asked for it: for contexts, code, streams.
  ImplicitMemory& implicit;
  // Asks the driver about contexts, streams, pointers and devices.
  tracking::DeviceQueries& queries;

  // Returns the context that owns memory allocated in the stream; 0 if there is none. That is the
  // stream's own context, or the current context if the stream is a default one or the driver does
  // not say. If that context belongs to a green context, and the primary context of the device is
  // recorded, returns the primary context instead.
  ContextId owner_of(CUstream stream) const noexcept {
    return session_.contexts.owner(queries.context_of(stream));
  }
  // Returns the device of the stream's context, or of the current context for a default stream.
  // no_device if there is no context, or if the context is not recorded or belongs to a green
  // context.
  DeviceOrdinal device_of(CUstream stream) const noexcept {
    return session_.contexts.device_of(queries.context_of(stream));
  }
  // Remembers that the program frees memory in this stream's order, so that a refused request can
  // wait for the free. Does nothing if rescues (attempts to serve refused requests) are off. To be
  // called before the driver's cuMemFreeAsync.
  void freed_in(CUstream stream) const noexcept {
    rescue::Refusals& refusals = session_.refusals;
    if (refusals.rescues() && !refusals.pending().was_noted_last(stream))
      refusals.pending().freed_in(stream, queries.context_of(stream));
  }
  // Notes that cuMemFree() has freed an allocation. If the allocation was stream-ordered, the
  // driver goes on counting it as used in its memory pool.
  void freed_out_of_order(const ledger::TakenRecord& freed) const noexcept {
    if (!memory_pools.any_used()) [[likely]]
      return;
    const ledger::GroupTable& groups = session_.ledger.groups;
    const GroupId group = freed.fields.group;
    if (groups.kind_of(group) == Kind::stream_ordered)
      memory_pools.freed_out_of_order(groups.device_of(group), freed.fields.bytes.value);
  }

 private:
  Session& session_;  // the recording of the process's CUDA calls, which owns all its parts
};

// The parts of a Session (the recording of a process's CUDA calls) for hooks of calls that make
// graphs, launch them or capture streams. Made for one use; the parts live as long as the Session.
class GraphParts {
 public:
  explicit GraphParts(Session& session) noexcept
      : records(session.ledger.allocations),
        groups(session.ledger.groups),
        sites(session.sites),
        captures(session.captures),
        pools(session.pools),
        session_(session) {}

  ledger::Allocations& records;  // the ledger's records of allocations
  ledger::GroupTable& groups;    // the ledger's groups, one for each call site
  tracking::CallSites& sites;    // walks call stacks
  tracking::Captures& captures;  // stream captures in progress
  serving::ServingPools& pools;  // cuwarden's own pools, which serve requests

  // Returns the context that owns memory which a graph's launch allocates now: the current context,
  // or 0 if there is none. If the current context belongs to a green context, and the primary
  // context of the device is recorded, returns the primary context instead.
  ContextId current_owner() const noexcept {
    return session_.contexts.owner(session_.queries.current().context);
  }
  // Notes that the process uses the device: from then on, cuwarden asks the driver about the
  // device's memory pools, and reads at the end of the process how full the device is. The first
  // call for a device also writes its name and UUID into the ledger. To be called when a graph gets
  // a node that allocates memory of the device.
  void uses(DeviceOrdinal device) const noexcept {
    session_.memory_pools.used_on(device);
    session_.readings.meet(device);
  }
  // Marks the ledger as incomplete: some allocations or frees are missing in it, for this reason.
  void incomplete(ledger::Reason reason) const noexcept { session_.ledger.file.add_reason(reason); }
  // Counts a capture of the stream as under way; to be called before the driver begins it. Then
  // waits for driver calls that cuwarden makes in other threads and that would disturb the capture:
  // they would end it, or put an event into it.
  //
  // `per_thread` is true if a null stream means the calling thread's own default stream. Returns
  // true if the capture was counted; if the driver then refuses it, the caller must call
  // Captures::ended(). Returns false, with nothing counted, if rescues (attempts to serve refused
  // requests) are off, if the stream is captured already, or if it is the legacy default stream,
  // which cannot be captured. Returns false, too, if the lock of `captures` cannot be had: the
  // capture then counts as under way for ever.
  bool capture_begins(CUstream, bool per_thread, CUstreamCaptureMode) const noexcept;

 private:
  Session& session_;  // the recording of the process's CUDA calls, which owns all its parts
};

// The parts of a Session (the recording of a process's CUDA calls) for hooks of contexts, streams,
// modules and kernels: calls that take device memory without being asked for it. Made for one use;
// the parts live as long as the Session.
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
        context_memory(session.context_memory),
        objects(session.objects),
        queries(session.queries),
        session_(session) {}

  ledger::Totals& totals;            // the ledger's sums of live bytes
  ledger::Devices& devices;          // the ledger's figures of each device
  const ledger::ProcessTime& time;   // tells the time since the process began
  tracking::LiveContexts& contexts;  // the process's contexts that have not ended
  // The stream captures under way; always none if cuwarden does not try to serve refused requests.
  const tracking::Captures& captures;
  serving::ServingPools& pools;        // cuwarden's own pools, which serve requests
  tracking::DeviceReadings& readings;  // reads how full devices are
  // Measures device memory that calls take without being asked for it: for contexts, code, streams.
  ImplicitMemory& implicit;
  tracking::ContextMemory& context_memory;  // records memory of contexts and for kernels
  tracking::ImplicitObjects& objects;       // records streams, modules, executable graphs
  // Asks the driver about contexts, streams, pointers and devices.
  tracking::DeviceQueries& queries;

  // True once the process has begun to end.
  bool process_ends() const noexcept { return session_.process_ends(); }
  // Forgets the context, which the driver has just ended, and all that belonged to it. Ends the
  // records of the context and of the memory that it owned, and drops memory that cuwarden's pools
  // or spilling have served in it. Stream captures of the context count as ended, and all kernels
  // as not launched. Returns the bytes that were subtracted from the device's implicit memory in
  // the ledger (ContextMemory::context_ended()).
  std::uint64_t context_ended(ContextId) const noexcept;
  // Forgets the stream: refused requests do not wait for frees in it, and a capture of it counts as
  // ended. If no stream is being captured then, frees memory of cuwarden's pools that the program
  // freed during a capture. Does nothing if rescues (attempts to serve refused requests) are off.
  // To be called before the driver destroys the stream.
  void stream_ends(CUstream) const noexcept;
  // Forgets the streams of `context`: refused requests do not wait for frees in them. `context`:
  // the context that is about to end; 0: unknown, so the streams of all contexts are forgotten.
  // Does nothing if rescues (attempts to serve refused requests) are off. To be called before the
  // driver ends the context.
  void streams_end(ContextId context) const noexcept {
    if (session_.refusals.rescues()) session_.refusals.pending().context_ends(context);
  }

 private:
  Session& session_;  // the recording of the process's CUDA calls, which owns all its parts
};

}  // namespace cuwarden::hooks
