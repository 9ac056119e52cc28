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

// The incident that counts a refusal. 0: it could not be stored.
struct Refused {
  IncidentId incident;
  // True if no other refusal came from there: the facts of the moment are to be set, then the
  // incident is published.
  bool first = false;
  // Time of the refusal, and of the incident's last one before it.
  std::uint64_t time_ns = 0, last_ns = 0, last_bytes = 0;
};
// The groups that held most at the moment of an incident, the largest first, and then those whose
// pieces lock most in slabs.
class IncidentHoldings {
 public:
  // Returns the group's entry, added if it is not there; null: there is no room.
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
struct SlabClassRow {
  std::uint64_t class_bytes = 0, slab_count = 0, live_count = 0, live_bytes = 0;
};
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

  // Counts a refusal. Its incident is not published yet where it is the first.
  Refused refused(const Refusal&, ThreadId, std::uint64_t now_ns) noexcept;
  // The request is refused to the program, too. Returns the incident that counts the refusal from
  // now on. `first` says that this is another incident, not published yet: all requests of the one
  // before it were served after all.
  Refused failed(const Refused&, const Refusal&, ThreadId, std::uint64_t now_ns) noexcept;
  // Fills in what is live on the device (no_device: on the host) now, and the groups that hold
  // most.
  void measure(DeviceOrdinal, IncidentFacts&, IncidentHoldings&) const noexcept;
  // Writes all that is known by now. The first time, the incident is published; later calls add
  // what was not known before, since the process may end, or hang, while more is being asked.
  void write(IncidentId, const IncidentFacts&, IncidentHoldings&) noexcept;
  // Adds another process that holds memory of the device. `bytes` may be unknown_bytes.
  void add_process(IncidentId, std::uint32_t pid, std::uint64_t bytes) noexcept;
  void add_slab_class(IncidentId, const SlabClassRow&) noexcept;
  // A slab of the device. All slabs of an incident are added by one call.
  void add_slabs(IncidentId, std::span<const SlabRow>) noexcept;
  // The thread that met the incident so often has had the same request served.
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
