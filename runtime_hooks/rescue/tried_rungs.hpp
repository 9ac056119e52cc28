// The rungs that were tried for one request, in their order, as rows of the ledger.
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

// Progress of a rescue. Each rung is reported when it begins (under_way), since the process may end
// in it, and when it has ended. A wait is reported at each attempt in between, too.
struct RungReport {
  ledger::Rung rung{};
  RungOutcome outcome{};
  std::uint64_t duration_ns = 0;
  std::string_view reclaimer;  // its name, valid during the call; empty: another rung
};

class TriedRungs {
 public:
  struct Row {
    RungReport report;  // `reclaimer` refers to `name`
    char name[sizeof Reclaimers::Entry::name];
  };

  // `ledger` outlives the object. The incident's rows are written as soon as rungs are reported; 0:
  // no rows are written before write().
  TriedRungs(ledger::Writer& ledger, IncidentId incident) noexcept
      : ledger_(ledger), incident_(incident) {}
  TriedRungs(const TriedRungs&) = delete;
  TriedRungs& operator=(const TriedRungs&) = delete;

  // Adds a report of a rung. Replaces the last row if that rung was still under way.
  void add(const RungReport& report) noexcept {
    const bool goes_on = count_ != 0 && rows_[count_ - 1].report.outcome == RungOutcome::under_way;
    if (goes_on || count_ != most) {
      Row& row = rows_[goes_on ? count_ - 1 : count_++];
      row.report = report;
      row.report.reclaimer = {row.name, report.reclaimer.copy(row.name, sizeof row.name)};
    }
    if (incident_.value != 0) write(incident_, count_ - 1);
  }
  // Writes all rows, for an incident that had none.
  void write(IncidentId incident) const noexcept {
    for (std::size_t i = 0; i < count_; ++i) write(incident, i);
  }
  std::span<const Row> rows() const noexcept { return {rows_, count_}; }
  // Returns true where a wait ended without memory.
  bool has_waited_in_vain() const noexcept {
    for (const Row& row : rows())
      if (row.report.rung == ledger::Rung::wait && row.report.outcome == RungOutcome::timed_out)
        return true;
    return false;
  }
  // Returns the rung that was tried last. There must be one.
  ledger::Rung last() const noexcept { return rows_[count_ - 1].report.rung; }

 private:
  void write(IncidentId incident, std::size_t at) const noexcept {
    const RungReport& report = rows_[at].report;
    ledger_.incidents.add_rung(incident, {static_cast<std::uint32_t>(at + 1), report.rung,
                                          report.outcome, report.duration_ns, report.reclaimer});
  }
  static constexpr std::size_t most = ledger::rung_count + Reclaimers::limit;
  ledger::Writer& ledger_;
  const IncidentId incident_;
  Row rows_[most];
  std::size_t count_ = 0;
};

}  // namespace cuwarden::rescue
