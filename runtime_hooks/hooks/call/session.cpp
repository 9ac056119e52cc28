#include "runtime_hooks/hooks/call/session.hpp"

namespace cuwarden::hooks {

Session::Session(ledger::Writer& given_ledger, const driver::RealDriver& given_real,
                 const Surroundings& around, const Settings& given_settings) noexcept
    : settings(given_settings),
      ledger(given_ledger),
      real(given_real),
      queries(real, contexts),
      captures(around.clock),
      notices(around.notices),
      pools(settings, around.spill, around.process, ledger, real, queries, contexts, captures,
            memory_pools, notices, around.clock),
      readings(ledger, real, queries, memory_pools, &pools, around.clock),
      neighbours(real, around.holders, around.clock),
      implicit(ledger, queries, readings, neighbours),
      sites(ledger, settings.stack_depth, &around.process, settings.python_frames),
      context_memory(ledger, contexts, implicit, sites),
      objects(ledger, contexts, implicit, sites),
      allocations(ledger, queries, contexts, readings, implicit, sites, around.completeness),
      refusals({.process = around.process,
                .ledger = ledger,
                .real = real,
                .queries = queries,
                .contexts = contexts,
                .captures = captures,
                .memory_pools = memory_pools,
                .readings = readings,
                .sites = sites,
                .pools = pools,
                .notices = notices},
               allocations, settings, around.reclaimers, around.probes, around.clock) {
  readings.tell_first(objects);
}

// Tells all measurements under way on the current device that another call may change its memory.
// A call may also change another device's memory. That is noticed if the change is recorded or ends
// a context, but not if a memory pool is trimmed or a range unmapped there.
[[gnu::cold]] void Session::disturb_spans() noexcept {
  const DeviceOrdinal here = queries.current().device;
  if (here == no_device)
    implicit.disturb_all_spans();
  else
    implicit.disturb_spans(here);
}

}  // namespace cuwarden::hooks
