#include "runtime_hooks/rescue/incident_facts.hpp"

#include <algorithm>

#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"

namespace cuwarden::rescue {

using ledger::Fact;

void set_device_facts(const Parts& parts, IncidentId incident, DeviceOrdinal device) noexcept {
  if (device == no_device) return;
  ledger::Writer& ledger = parts.ledger;
  // The size can be asked for without a context.
  if (const std::uint64_t total = parts.queries.total_bytes_of(device); total != 0)
    ledger.incidents.set_fact(incident, Fact::total_bytes, total);
  if (parts.queries.current_unguarded().device != device) return;
  const auto reading = driver::read_current_device(parts.real);
  if (!reading) return;
  ledger.incidents.set_fact(incident, Fact::total_bytes, reading->total_bytes);
  ledger.incidents.set_fact(incident, Fact::free_bytes, reading->free_bytes);
  if (const std::uint64_t spilled = ledger.devices.spilled_bytes_on(device); spilled != 0) {
    ledger.incidents.set_fact(incident, Fact::spilled_bytes, spilled);
    ledger.incidents.set_fact(incident, Fact::spilled_in_stream_order_bytes,
                              ledger.devices.spilled_in_stream_order_on(device));
  }
  pool::DevicePool& pool = parts.pools.parts().device;
  if (pool.any()) {
    const pool::ArenaCounts counts = pool.counts(device);
    ledger.incidents.set_fact(incident, Fact::arena_unused_bytes,
                              counts.held_bytes - counts.live_bytes);
  }
  const auto idle = parts.readings.idle_in_memory_pools(device);
  if (!idle) return;
  ledger.incidents.set_fact(incident, Fact::memory_pool_idle_bytes, idle->unused);
  ledger.incidents.set_fact(incident, Fact::graph_rest_bytes,
                            idle->unallocated - std::min(idle->unallocated, idle->unused));
}

void set_compute_mode(const Parts& parts, IncidentId incident, DeviceOrdinal device) noexcept {
  const int mode = parts.queries.compute_mode_of(device);
  if (mode != CU_COMPUTEMODE_DEFAULT)
    parts.ledger.incidents.set_fact(incident, Fact::compute_mode, static_cast<std::uint64_t>(mode));
}

}  // namespace cuwarden::rescue
