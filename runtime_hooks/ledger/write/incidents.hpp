// The table of incidents: requests that were refused for lack of memory. Each call site has one row
// or more, with the facts known at the row's first refusal.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/ledger/format/incident_facts.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"

namespace cuwarden::ledger {

// Result of Incidents::refused() and Incidents::failed(): the incident that counts a refused
// request.
struct Refused {
  IncidentId incident;  // the incident that counts the refusal; 0: none, for lack of room
  // True if this is the incident's first refusal. The caller must then pass the facts of the moment
  // to Incidents::write(), since readers see the incident only after that.
  bool first = false;
  // Time of the refusal, in ns since process start. Only set by refused(), for an incident's second
  // and later refusals; otherwise 0.
  std::uint64_t time_ns = 0;
  // Time (in ns since process start) and size in bytes of the refusal that the incident counted
  // just before this one. Only set by refused(), for an incident's second and later refusals;
  // otherwise 0.
  std::uint64_t last_ns = 0, last_bytes = 0;
};
// The groups that held most memory of the device, or of the host, when a request was refused: at
// most 8, largest first. At most 3 groups of frameworks' blocks follow. The last entries are at
// most 4 groups with many locked bytes: unused bytes of those of the driver's slabs (2 MiB units)
// in which the group has live allocations.
class IncidentHoldings {
 public:
  // Returns the group's entry, which tells how much memory the group held at the refusal. Adds an
  // empty entry if the group has none. The entry is valid as long as the object. Null if all 16
  // entries are in use by other groups.
  IncidentHolding* of(GroupId) noexcept;
  // Returns the entries in use: groups that held memory at the refusal, at most 16, in the order in
  // which they were added.
  std::span<IncidentHolding> all() noexcept { return std::span(all_).first(count_); }
  // Returns the entries in use: groups that held memory at the refusal, at most 16, in the order in
  // which they were added.
  std::span<const IncidentHolding> all() const noexcept { return std::span(all_).first(count_); }

 private:
  friend class Incidents;
  static constexpr std::size_t most = 16;  // most groups that can have an entry in `all_`
  // The entries: groups that held memory at the refusal. The first count_ entries are in use.
  std::array<IncidentHolding, most> all_{};
  // Row of each entry of `all_` in the ledger's table of holders; 0: it was not written yet.
  std::array<std::uint32_t, most> rows_{};
  std::size_t count_ = 0;  // number of entries of `all_` in use
};
// Writes the ledger's incidents. A refused request is counted with the latest incident of its call
// site (group), or begins a new incident. All threads may call the functions at any time.
class Incidents {
 public:
  // `storage`: the memory of the ledger that gets the incidents; must outlive the object.
  explicit Incidents(Storage& storage) noexcept : storage_(storage) {}

  // Counts a refusal by the driver at `now_ns` (since process start), before any rung is tried.
  // Returns the incident that counts the refusal. A call site (group) gets an incident at its first
  // refusal. A later refusal begins a new incident if the latest one is older than 10 s and all its
  // requests were served in the end. The 10 s become four times as long with each incident. Reads
  // only `asked`, `result` and `bytes` of `refusal`. Counts nothing, and returns no incident, for a
  // group of 0, which the ledger had no room for. The ledger keeps 1000 incidents at most. Without
  // room for another one, only call sites that have an incident count further refusals.
  Refused refused(GroupId, const IncidentFacts& refusal, ThreadId, std::uint64_t now_ns) noexcept;
  // Counts a failure: no rung has served the request, so the program gets the error. `known`: the
  // result of refused() for the request; the other arguments equal those of that call. Also counts
  // the failure in the group, if memory or a graph was asked for. Returns the incident that counts
  // the request from now on; none if `known` has none. This is the incident of `known`, with an
  // exception. If `known` is not the incident's first refusal, rungs have served others of its
  // requests, and none has failed, the failure belongs to a newer incident. Refused::first is then
  // true if this call has begun it, and false if another thread has.
  Refused failed(const Refused& known, GroupId, const IncidentFacts& refusal, ThreadId,
                 std::uint64_t now_ns) noexcept;
  // Adds to the facts, by kind, the bytes and number of the process's live allocations on the
  // device (no_device: in host memory). Adds the 8 groups with the most live bytes there to the
  // holdings, largest first. Adds the 3 groups with the most bytes of frameworks' blocks behind
  // them. The facts do not count these blocks, since they lie in other groups' memory.
  void measure(DeviceOrdinal, IncidentFacts&, IncidentHoldings&) const noexcept;
  // Writes the facts and holdings (the groups that held most memory at the refusal) that are known
  // so far to the incident's rows. The first call stores the live bytes and counts, and makes the
  // incident visible to readers. Later calls store the facts and holdings that have become known
  // since; a fact that is unknown in the argument stays as it is stored. To be called before each
  // question to the driver, in which the process may end or hang.
  void write(IncidentId, const IncidentFacts&, IncidentHoldings&) noexcept;
  // Adds another process that used the device when the incident's request was refused. Adds no row
  // if the table of such processes is full. Returns a copy of the argument whose texts lie in the
  // ledger; a text is empty if there was no room for it.
  OtherProcess add_process(IncidentId, const OtherProcess&) noexcept;
  // Adds the figures of the driver's slabs (2 MiB units) of one size class to the incident. Does
  // nothing if the ledger's table of such figures is full.
  void add_slab_class(IncidentId, const SlabClassRow&) noexcept;
  // Adds all the driver's slabs (2 MiB units) on the request's device to the incident. Stores none
  // of the slabs if they would take more than half of the remaining rows of the ledger's table of
  // slabs. Must be called at most once for an incident.
  void add_slabs(IncidentId, std::span<const SlabRow>) noexcept;
  // Counts `times` refusals of the incident (not 0) as recovered. The program saw an error, but the
  // thread then repeated the request within 10 s until it was served: with equal size, device,
  // function and kind.
  void recovered(IncidentId, std::uint32_t times) noexcept;
  // Adds a rung that is tried for the incident's first refusal. A second call with an equal
  // RungRow::order replaces the rung's duration and outcome. Does nothing if the ledger's table of
  // rungs is full.
  void add_rung(IncidentId, const RungRow&) noexcept;
  // Stores the reason why the rung was left out at the incident's first refusal. The incident is
  // not 0.
  void leave_out(IncidentId, Rung, LeftOut) noexcept;
  // Counts a request of the incident that the driver refused and this rung then served, so that the
  // program saw no error. `bytes`: size of the request. The incident is not 0.
  void rescued(IncidentId, Rung, std::uint64_t bytes) noexcept;

 private:
  // Returns the incident's row in the ledger. `id` must not be 0.
  Incident& row(IncidentId id) const noexcept {
    return storage_.rows<Incident>(RegionId::incidents)[id.value];
  }
  // Returns this row of the ledger's groups table; `row` must not be 0.
  Group& group(std::uint32_t row) const noexcept {
    return storage_.rows<Group>(RegionId::groups)[row];
  }
  // Returns this row of the ledger's table of holders (groups with much memory at a refusal).
  IncidentHolder& holder_row(std::uint64_t row) const noexcept {
    return storage_.rows<IncidentHolder>(RegionId::incident_holders)[row];
  }
  // Makes a new incident's row for the refusal's call site (group). `latest`: row of the site's
  // latest incident; 0: none. Returns the new row. Returns 0 if there is no room. Also returns 0 if
  // another thread has made a new row first; `latest` is then set to that thread's row.
  std::uint32_t begin(GroupId, const IncidentFacts& refusal, ThreadId, std::uint64_t now_ns,
                      std::uint32_t& latest) noexcept;
  // Adds a holder (a group that held much memory at the refusal) to the incident. Returns the
  // holder's row in the table of holders; 0 if there is no room.
  std::uint32_t add_holder(IncidentId, const IncidentHolding&) noexcept;
  // Calls visit(row, counts) for each group of the device (-1: of the host), also for those without
  // live memory. `row`: row of the group. `counts`: the group's GroupCounts.
  template <class Visit>
  void each_group(std::int32_t device, const Visit&) const noexcept;

  Storage& storage_;  // the memory of the ledger, with its tables
};

}  // namespace cuwarden::ledger
