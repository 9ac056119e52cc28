#include "runtime_hooks/rescue/incident_facts.hpp"

#include <algorithm>

#include "runtime_hooks/driver/device_reading.hpp"

namespace cuwarden::rescue {

using ledger::Fact;

void set_device_facts(const Parts& parts, IncidentId incident, DeviceOrdinal device) noexcept {
  if (device == no_device) return;
  ledger::Writer& ledger = parts.ledger;
  // The size can be asked for without a context.
  if (const std::uint64_t total = parts.queries.total_bytes_of(device); total != 0)
    ledger.set_fact(incident, Fact::total_bytes, total);
  if (parts.queries.current_unguarded().device != device) return;
  const auto reading = driver::read_current_device(parts.real);
  if (!reading) return;
  ledger.set_fact(incident, Fact::total_bytes, reading->total_bytes);
  ledger.set_fact(incident, Fact::free_bytes, reading->free_bytes);
  if (const std::uint64_t spilled = ledger.spilled_bytes_on(device); spilled != 0) {
    ledger.set_fact(incident, Fact::spilled_bytes, spilled);
    ledger.set_fact(incident, Fact::spilled_in_stream_order_bytes,
                    ledger.spilled_in_stream_order_on(device));
  }
  pool::DevicePool& pool = parts.pools.device_pool();
  if (pool.any()) {
    const pool::ArenaCounts counts = pool.counts(device);
    ledger.set_fact(incident, Fact::arena_unused_bytes, counts.held_bytes - counts.live_bytes);
  }
  const auto idle = parts.readings.idle_in_memory_pools(device);
  if (!idle) return;
  ledger.set_fact(incident, Fact::memory_pool_idle_bytes, idle->unused);
  ledger.set_fact(incident, Fact::graph_rest_bytes,
                  idle->unallocated - std::min(idle->unallocated, idle->unused));
}

void set_compute_mode(const Parts& parts, IncidentId incident, DeviceOrdinal device) noexcept {
  const int mode = parts.queries.compute_mode_of(device);
  if (mode != CU_COMPUTEMODE_DEFAULT)
    parts.ledger.set_fact(incident, Fact::compute_mode, static_cast<std::uint64_t>(mode));
}

}  // namespace cuwarden::rescue
