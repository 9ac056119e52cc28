#include "runtime_hooks/rescue/device_facts.hpp"

#include <algorithm>

#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/ledger/write/frameworks.hpp"

namespace cuwarden::rescue {
namespace {

using ledger::Fact;

void add_memory(const Parts& parts, DeviceOrdinal device, ledger::IncidentFacts& facts) noexcept {
  if (device == no_device) return;
  // The device's size can be read without a context.
  if (const std::uint64_t total = parts.queries.total_bytes_of(device); total != 0)
    facts.set(Fact::total_bytes, total);
  if (parts.queries.current_unguarded().device != device) return;
  const auto reading = driver::read_current_device(parts.real);
  if (!reading) return;
  facts.set(Fact::total_bytes, reading->total_bytes);
  facts.set(Fact::free_bytes, reading->free_bytes);
  ledger::Devices& devices = parts.ledger.devices;
  if (const std::uint64_t spilled = devices.spilled_bytes_on(device); spilled != 0) {
    facts.set(Fact::spilled_bytes, spilled);
    facts.set(Fact::spilled_in_stream_order_bytes, devices.spilled_in_stream_order_on(device));
  }
  if (parts.pools.has_memory_of(device)) {
    const pool::ArenaCounts counts = parts.pools.counts(device);
    facts.set(Fact::arena_unused_bytes,
              counts.held_bytes - std::min(counts.held_bytes, counts.live_bytes));
  }
  const auto idle = parts.readings.idle_in_memory_pools(device);
  if (!idle) return;
  facts.set(Fact::memory_pool_idle_bytes, idle->unused);
  facts.set(Fact::graph_rest_bytes, idle->unallocated - std::min(idle->unallocated, idle->unused));
}

}  // namespace

void add_device_facts(const Parts& parts, Incident& incident) noexcept {
  const Request& request = incident.request;
  if (const auto pytorch = parts.ledger.frameworks.pytorch_on(request.device)) {
    incident.facts.set(Fact::pytorch_reserved_bytes, pytorch->reserved_bytes);
    incident.facts.set(Fact::pytorch_allocated_bytes, pytorch->allocated_bytes);
  }
  add_memory(parts, request.device, incident.facts);
  if (parts.queries.is_integrated(request.device)) incident.facts.set(Fact::integrated, 1);
  if (request.asked != ledger::Asked::context) return;
  const int mode = parts.queries.compute_mode_of(request.device);
  if (mode != CU_COMPUTEMODE_DEFAULT)
    incident.facts.set(Fact::compute_mode, static_cast<std::uint64_t>(mode));
}

}  // namespace cuwarden::rescue
