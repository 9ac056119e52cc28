#include "tools/cuwarden/top/top_waiting.hpp"

#include <algorithm>

#include "reporters/tables/incident_tables.hpp"
#include "reporters/tables/memory_tables.hpp"

namespace cuwarden {

std::vector<WaitingRequest> waiting_requests(const WatchedProcess& watched, std::uint64_t now_ns) {
  std::vector<WaitingRequest> all;
  if (watched.ended) return all;
  const ledger::Reader& reader = *watched.reader;
  const std::uint64_t start_ns = reader.process().start_monotonic_ns;
  for (std::uint64_t i = 1; i < reader.rows(ledger::RegionId::threads); ++i) {
    const auto thread = reader.thread(i);
    if (!thread || !thread->under_way) continue;
    const ledger::RequestUnderWayView& request = *thread->under_way;
    const auto incident = reader.incident(request.incident.value);
    const auto group = incident ? reader.group(incident->group.value) : std::nullopt;
    if (!group) continue;
    const std::uint64_t begun_ns = start_ns + request.since_ns;
    WaitingRow row;
    row.pid = watched.pid;
    row.thread = thread->tid;
    row.kind = kind_name(group->kind);
    row.device = device_id(group->device);
    row.asked_for = asked_name(incident->asked);
    if (request.bytes != 0) row.bytes = request.bytes;
    row.rung = rung_name(request.rung);
    row.duration_ns = now_ns - std::min(now_ns, begun_ns);
    all.push_back({group->id.value, std::move(row)});
  }
  return all;
}

}  // namespace cuwarden
