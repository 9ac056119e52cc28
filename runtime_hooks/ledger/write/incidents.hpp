// Requests that were refused for lack of memory, one row for each place that asks, and what was
// known at the first of them.
#pragma once

#include <cstdint>
#include <span>

#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::ledger {

class Incidents {
 public:
  explicit Incidents(Storage& storage) noexcept : storage_(storage) {}

  // Not published yet where it is the first.
  Writer::Refused refused(const Refusal&, ThreadId, std::uint64_t now_ns) noexcept;
  Writer::Refused failed(const Writer::Refused&, const Refusal&, ThreadId,
                         std::uint64_t now_ns) noexcept;
  void set_fact(IncidentId, Fact, std::uint64_t) noexcept;
  void publish(IncidentId) noexcept;
  void add_process(IncidentId, std::uint32_t pid, std::uint64_t bytes) noexcept;
  void set_growth(std::uint64_t holder, std::uint64_t bytes_per_minute) noexcept;
  void add_slab_share(IncidentId, const Writer::SlabShare&) noexcept;
  void add_slab_class(IncidentId, const Writer::SlabClassRow&) noexcept;
  void add_slabs(IncidentId, std::span<const Writer::SlabRow>) noexcept;
  void recovered(IncidentId, std::uint32_t times) noexcept;
  void add_rung(IncidentId, const Writer::RungRow&) noexcept;
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
  // In the place of `latest`, which is of the same place. 0: there is no room, or another thread
  // has come first, and `latest` is its row.
  std::uint32_t begin(const Refusal&, ThreadId, std::uint64_t now_ns,
                      std::uint32_t& latest) noexcept;
  struct NewHolder {
    std::uint32_t incident = 0, group = 0, pid = 0;
    std::uint64_t count = 0, bytes = 0, slab_locked_bytes = unknown_bytes;
  };
  void add_holder(const NewHolder&) noexcept;
  // What is live where the incident's memory would have been, by group.
  template <class Visit>
  void each_live_group(std::int32_t device, const Visit&) const noexcept;

  Storage& storage_;
};

}  // namespace cuwarden::ledger
