// The rungs (ordered attempts to serve a refused request) that were tried for one request, in their
// order, as rows of the ledger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/rescue/reclaimers.hpp"

namespace cuwarden::rescue {

using ledger::RungOutcome;

// The state of one rung (an attempt to serve a refused request) at one moment. There is a report
// when the rung begins (under_way), since the process may end during it, and one when it has ended.
// The wait rung reports each attempt in between, too.
struct RungReport {
  ledger::Rung rung{};
  RungOutcome outcome{};
  // Nanoseconds for which the rung has run so far.
  std::uint64_t duration_ns = 0;
  // Name of the reclaimer (a callback that empties a cache) that the rung calls; empty for other
  // rungs. TriedRungs::add() copies it.
  std::string_view reclaimer;
};

// Collects the reports of one rescue's rungs. Used by the requesting thread only.
class TriedRungs {
 public:
  // The last report of one rung, with a copy of the reclaimer's name.
  struct Row {
    RungReport report;  // its `reclaimer` points to `name`
    char name[sizeof Reclaimers::Entry::name];
  };

  // `ledger` outlives the object. `incident`: the incident in the ledger to which the outcome of
  // each rung is written at once; 0: the outcomes are written only by write().
  TriedRungs(ledger::Writer& ledger, IncidentId incident) noexcept
      : ledger_(ledger), incident_(incident) {}
  TriedRungs(const TriedRungs&) = delete;
  TriedRungs& operator=(const TriedRungs&) = delete;

  // Adds a report about a rung. If the last report said that its rung was under way, the new report
  // replaces it; otherwise it is added as a new row, or dropped if there is no room. Writes the
  // last row to the ledger if the constructor was given an incident.
  void add(const RungReport& report) noexcept {
    const bool goes_on = count_ != 0 && rows_[count_ - 1].report.outcome == RungOutcome::under_way;
    if (goes_on || count_ != most) {
      Row& row = rows_[goes_on ? count_ - 1 : count_++];
      row.report = report;
      row.report.reclaimer = {row.name, report.reclaimer.copy(row.name, sizeof row.name)};
    }
    if (incident_.value != 0) write(incident_, count_ - 1);
  }
  // Copies the last reports of all rungs so far to the ledger, as rows of the incident. Must be
  // called at most once for an incident, and only if no report was written to it before.
  void write(IncidentId incident) const noexcept {
    for (std::size_t i = 0; i < count_; ++i) write(incident, i);
  }
  // Returns the last report of each attempt, in the order in which the rungs were tried. The rows
  // stay in this object.
  std::span<const Row> rows() const noexcept { return {rows_, count_}; }
  // Returns true if the request has waited for other processes' memory, and got none in the time
  // that the settings allow.
  bool has_waited_in_vain() const noexcept {
    for (const Row& row : rows())
      if (row.report.rung == ledger::Rung::wait && row.report.outcome == RungOutcome::timed_out)
        return true;
    return false;
  }
  // Returns the rung that was tried last. Must not be called if none was tried.
  ledger::Rung last() const noexcept { return rows_[count_ - 1].report.rung; }

 private:
  void write(IncidentId incident, std::size_t at) const noexcept {
    const RungReport& report = rows_[at].report;
    ledger_.incidents.add_rung(incident, {static_cast<std::uint32_t>(at + 1), report.rung,
                                          report.outcome, report.duration_ns, report.reclaimer});
  }
  // Most rungs that are kept: each rung once, and the reclaim rung once for each reclaimer.
  static constexpr std::size_t most = ledger::rung_count + Reclaimers::limit;
  ledger::Writer& ledger_;
  const IncidentId incident_;
  Row rows_[most];
  std::size_t count_ = 0;
};

}  // namespace cuwarden::rescue
