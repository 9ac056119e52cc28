// The table of incidents: requests that were refused for lack of memory, one row for each call
// site, with the facts known at its first refusal.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/ledger/format/incident_facts.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"

namespace cuwarden::ledger {

// A request that was refused for lack of memory.
struct Refusal {
  GroupId group;  // group of the call site
  Asked asked = Asked::memory;
  std::int32_t result = 0;  // the driver's CUresult
  ByteCount bytes;          // size of the request; 0: the call does not say
};

// The result of counting a refusal. `incident`: the incident that counts it; 0 if it could not be
// stored.
struct Refused {
  IncidentId incident;
  // True if this is the incident's first refusal: the caller must write the facts of the moment,
  // which publishes the incident.
  bool first = false;
  // Time of this refusal, and time and size of the incident's last refusal before it; 0 if there
  // was none.
  std::uint64_t time_ns = 0, last_ns = 0, last_bytes = 0;
};
// The groups that held most memory at an incident, largest first, followed by the groups that lock
// most in slabs.
class IncidentHoldings {
 public:
  // Returns the group's entry, which is added if it is missing; null if there is no room.
  IncidentHolding* of(GroupId) noexcept;
  std::span<IncidentHolding> all() noexcept { return std::span(all_).first(count_); }
  std::span<const IncidentHolding> all() const noexcept { return std::span(all_).first(count_); }

 private:
  friend class Incidents;
  static constexpr std::size_t most = 12;
  std::array<IncidentHolding, most> all_{};
  std::array<std::uint32_t, most> rows_{};  // in the ledger; 0: not written yet
  std::size_t count_ = 0;
};
// The slabs of one size class at an incident.
struct SlabClassRow {
  std::uint64_t class_bytes = 0, slab_count = 0, live_count = 0, live_bytes = 0;
};
// One slab at an incident.
struct SlabRow {
  DeviceAddress address;
  std::uint64_t live_count = 0, live_bytes = 0;
};
// A rung that was tried at an incident's first refusal.
struct RungRow {
  std::uint32_t order = 0;  // position among the incident's rungs, from 1
  Rung rung{};
  RungOutcome outcome{};
  std::uint64_t duration_ns = 0;
  std::string_view name;  // the reclaimer's name; empty for other rungs
};

class Incidents {
 public:
  explicit Incidents(Storage& storage) noexcept : storage_(storage) {}

  // Counts a refusal. If it is the first one of its incident, the incident is not visible to
  // readers before write().
  Refused refused(const Refusal&, ThreadId, std::uint64_t now_ns) noexcept;
  // Notes that the request is refused to the program, too. Returns the incident that counts the
  // refusal from now on. It is a new one, with `first` set, if all earlier refusals of the old
  // incident were served after all.
  Refused failed(const Refused&, const Refusal&, ThreadId, std::uint64_t now_ns) noexcept;
  // Sets the live memory on the device (no_device: on the host) at this moment, and the groups that
  // hold most.
  void measure(DeviceOrdinal, IncidentFacts&, IncidentHoldings&) const noexcept;
  // Writes the facts that are known by now. The first call makes the incident visible to readers;
  // later calls add further facts. It is called several times because the process may end or hang
  // while the driver is asked for more.
  void write(IncidentId, const IncidentFacts&, IncidentHoldings&) noexcept;
  // Adds another process that holds memory of the device. `bytes` may be unknown_bytes.
  void add_process(IncidentId, std::uint32_t pid, std::uint64_t bytes) noexcept;
  void add_slab_class(IncidentId, const SlabClassRow&) noexcept;
  // Adds the slabs of the device; to be called once for an incident, with all slabs.
  void add_slabs(IncidentId, std::span<const SlabRow>) noexcept;
  // Notes that a thread that was refused `times` times has had an equal request served.
  void recovered(IncidentId, std::uint32_t times) noexcept;
  void add_rung(IncidentId, const RungRow&) noexcept;
  // Notes that a rung has served the refused request.
  void rescued(IncidentId, Rung, std::uint64_t bytes) noexcept;

 private:
  Incident& row(IncidentId id) const noexcept {
    return storage_.rows<Incident>(RegionId::incidents)[id.value];
  }
  Group& group(std::uint32_t row) const noexcept {
    return storage_.rows<Group>(RegionId::groups)[row];
  }
  IncidentHolder& holder_row(std::uint64_t row) const noexcept {
    return storage_.rows<IncidentHolder>(RegionId::incident_holders)[row];
  }
  // Makes the row that follows `latest`, of the same call site. Returns 0 if there is no room, or
  // if another thread has made the row; then `latest` is set to that row.
  std::uint32_t begin(const Refusal&, ThreadId, std::uint64_t now_ns,
                      std::uint32_t& latest) noexcept;
  // Returns the row; 0: there is no room.
  std::uint32_t add_holder(IncidentId, const IncidentHolding&) noexcept;
  // Calls the visitor for each group with live memory on the device (or the host).
  template <class Visit>
  void each_live_group(std::int32_t device, const Visit&) const noexcept;

  Storage& storage_;
};

}  // namespace cuwarden::ledger
