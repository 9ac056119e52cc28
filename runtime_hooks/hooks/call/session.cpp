#include "runtime_hooks/hooks/call/session.hpp"

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"

namespace cuwarden::hooks {

Session::Session(ledger::Writer& given_ledger, const driver::RealDriver& given_real,
                 const Surroundings& around, const SessionSettings& settings) noexcept
    : ledger(given_ledger),
      real(given_real),
      queries(real, contexts),
      notices(around.notices),
      pools(settings.serving, around.process, ledger, real, queries, contexts, captures,
            memory_pools, notices, around.clock),
      readings(ledger, real, queries, memory_pools, &pools),
      implicit(ledger, queries, readings),
      sites(ledger, settings.stack_depth),
      allocations(ledger, queries, contexts, readings, implicit, sites, around.completeness),
      refusals({around.process, ledger, real, queries, contexts, captures, memory_pools, readings,
                sites, pools, notices},
               allocations, settings.ladder, around.probes, around.clock) {}

// Tells all measurements under way on the current device that another call may change its memory.
// A call may also change another device's memory. That is noticed if the change is recorded or ends
// a context, but not if a memory pool is trimmed or a range unmapped there.
[[gnu::cold]] void Session::disturb_spans() noexcept {
  const DeviceOrdinal here = queries.current().device;
  if (here == no_device)
    implicit.disturb_all();
  else
    implicit.disturb(here);
}

void Session::context_ended(ContextId context) noexcept {
  const ErrnoGuard keep;
  ledger.allocations.release_context(context);
  if (refusals.rescues()) captures.context_ends(context);
  pools.context_ended(context);
  contexts.ended(context);
  implicit.context_ended();
}

void Session::stream_ends(CUstream stream) noexcept {
  if (!refusals.rescues()) return;
  refusals.pending().stream_ends(stream);
  captures.stream_ends(stream);
  pools.free_deferred_if_idle();
}

bool Session::capture_begins(CUstream stream, bool per_thread) noexcept {
  if (!refusals.rescues()) return false;
  refusals.pending().capture_begins();
  return captures.begins(stream, per_thread, queries.current().context);
}

}  // namespace cuwarden::hooks
