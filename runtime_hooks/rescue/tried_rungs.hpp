// The rungs that were tried for one request, in their order, as rows of the ledger.
#pragma once

#include <cstddef>

#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/rescue/rung.hpp"

namespace cuwarden::rescue {

class TriedRungs {
 public:
  // Adds a report of a rung. Replaces the last one if that rung was still under way.
  void add(const RungReport& report) noexcept {
    const bool goes_on = count_ != 0 && rows_[count_ - 1].report.outcome == RungOutcome::under_way;
    if (!goes_on && count_ == most) return;
    Row& row = rows_[goes_on ? count_ - 1 : count_++];
    row.report = report;
    row.report.reclaimer = {row.name, report.reclaimer.copy(row.name, sizeof row.name)};
  }
  void write_last(ledger::Writer& ledger, IncidentId incident) const noexcept {
    if (count_ != 0) write(ledger, incident, count_ - 1);
  }
  void write(ledger::Writer& ledger, IncidentId incident) const noexcept {
    for (std::size_t i = 0; i < count_; ++i) write(ledger, incident, i);
  }
  // Returns true where a wait ended without memory.
  bool has_waited_in_vain() const noexcept {
    for (std::size_t i = 0; i < count_; ++i)
      if (rows_[i].report.rung == ledger::Rung::wait &&
          rows_[i].report.outcome == RungOutcome::timed_out)
        return true;
    return false;
  }
  // Returns the rung that was tried last. There must be one.
  ledger::Rung last() const noexcept { return rows_[count_ - 1].report.rung; }

 private:
  void write(ledger::Writer& ledger, IncidentId incident, std::size_t at) const noexcept {
    const RungReport& report = rows_[at].report;
    ledger.incidents.add_rung(incident, {static_cast<std::uint32_t>(at + 1), report.rung,
                                         report.outcome, report.duration_ns, report.reclaimer});
  }
  static constexpr std::size_t most = ledger::rung_count + Reclaimers::limit;
  struct Row {
    RungReport report;
    char name[sizeof Reclaimers::Entry::name];
  };
  Row rows_[most];
  std::size_t count_ = 0;
};

}  // namespace cuwarden::rescue
