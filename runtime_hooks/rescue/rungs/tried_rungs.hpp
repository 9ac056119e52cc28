// The rungs that were tried for one request, in their order, as rows of the ledger; and the reasons
// why other rungs were left out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/rescue/rungs/reclaimers.hpp"

namespace cuwarden::rescue {

using ledger::LeftOut;
using ledger::RungOutcome;

// The state of one rung at one moment. There is a report when the rung begins (under_way), since
// the process may end during it, and one when it has ended. The wait rung also makes a report after
// each attempt during its wait.
struct RungReport {
  ledger::Rung rung{};  // the rung that is tried
  // The rung's outcome; under_way if it has not ended.
  RungOutcome outcome{};
  // Nanoseconds for which the rung has run so far.
  std::uint64_t duration_ns = 0;
  // Name of the reclaimer (a function that empties a cache) that the rung calls; empty for other
  // rungs. TriedRungs::add() copies it.
  std::string_view reclaimer;
};

// Collects reports about the rungs that are tried for one refused request, and writes them to the
// ledger. Used by the requesting thread only.
class TriedRungs {
 public:
  // The last report of one rung, with a copy of the name of the reclaimer (a function that empties
  // a cache) that the rung called.
  struct Row {
    RungReport report;  // the rung's last report; RungReport::reclaimer points to Row::name
    // Copy of the name of the reclaimer (a function that empties a cache) that the rung called,
    // without a zero byte. RungReport::reclaimer has its length, which is 0 for other rungs.
    char name[sizeof Reclaimers::Entry::name];
  };

  // `ledger` outlives the object. `refused`: the counted refusal of the request. If the refusal is
  // the first one of its incident, each report is written to the ledger at once; otherwise only
  // write() writes them.
  TriedRungs(ledger::Writer& ledger, const ledger::Refused& refused) noexcept
      : ledger_(ledger),
        counted_by_(refused.incident),
        incident_(refused.first ? refused.incident : IncidentId{}) {}
  TriedRungs(const TriedRungs&) = delete;
  TriedRungs& operator=(const TriedRungs&) = delete;

  // Adds a report about a rung. If the last report said that its rung was under way, the new report
  // replaces it. Otherwise the report becomes a new row; it is dropped if there is no room. Writes
  // the last row to the ledger if the refusal is its incident's first one.
  void add(const RungReport& report) noexcept {
    const bool goes_on = count_ != 0 && rows_[count_ - 1].report.outcome == RungOutcome::under_way;
    if (goes_on || count_ != most) {
      Row& row = rows_[goes_on ? count_ - 1 : count_++];
      row.report = report;
      row.report.reclaimer = {row.name, report.reclaimer.copy(row.name, sizeof row.name)};
    }
    if (incident_.value != 0) write(incident_, count_ - 1);
  }
  // Records the reason, other than LeftOut::none, why a rung is left out. Writes it to the ledger
  // if the refusal is its incident's first one.
  void leave_out(ledger::Rung rung, LeftOut reason) noexcept {
    left_out_[static_cast<std::size_t>(rung)] = reason;
    if (incident_.value != 0) ledger_.incidents.leave_out(incident_, rung, reason);
  }
  // Records for all rungs that they are left out for this reason (not LeftOut::none).
  void leave_out_all(LeftOut reason) noexcept {
    for (std::size_t i = 0; i < ledger::rung_count; ++i)
      leave_out(static_cast<ledger::Rung>(i), reason);
  }
  // Returns the reason why the rung was left out; LeftOut::none if leave_out() was not called for
  // it.
  LeftOut left_out(ledger::Rung rung) const noexcept {
    return left_out_[static_cast<std::size_t>(rung)];
  }
  // Writes the last reports of all rungs so far, and the reasons why rungs were left out, to the
  // ledger's rows of the incident. Must be called at most once for an incident, and only if nothing
  // of the rungs was written to it before.
  void write(IncidentId incident) const noexcept {
    for (std::size_t i = 0; i < count_; ++i) write(incident, i);
    for (std::size_t i = 0; i < ledger::rung_count; ++i)
      if (left_out_[i] != LeftOut::none)
        ledger_.incidents.leave_out(incident, static_cast<ledger::Rung>(i), left_out_[i]);
  }
  // Returns the incident that counts the refusal of the request; 0: none does.
  IncidentId counted_by() const noexcept { return counted_by_; }
  // Returns the rows with the last report of each attempt, in the order in which the attempts were
  // made. The rows stay in this object.
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
  // Writes one row of `rows_` to the ledger, as a rung that was tried in `incident`, which must not
  // be 0. `at`: index of the row, less than `count_`. If the ledger's table of rungs is full, the
  // row is left out.
  void write(IncidentId incident, std::size_t at) const noexcept {
    const RungReport& report = rows_[at].report;
    ledger_.incidents.add_rung(incident, {.order = static_cast<std::uint32_t>(at + 1),
                                          .rung = report.rung,
                                          .outcome = report.outcome,
                                          .duration_ns = report.duration_ns,
                                          .name = report.reclaimer});
  }
  // Number of entries of `rows_`: one for each rung, and one more for each reclaimer (a function
  // that empties a cache).
  static constexpr std::size_t most = ledger::rung_count + Reclaimers::limit;
  ledger::Writer& ledger_;  // the ledger, to which the reports about rungs are written
  // The incident that counts the refusal; 0: none does.
  const IncidentId counted_by_;
  // The incident to which each row is written as soon as a rung begins or ends. 0: rows are only
  // kept in `rows_`, because the refusal is not its incident's first one.
  const IncidentId incident_;
  // The rungs that were tried, in order; the first `count_` rows are in use.
  Row rows_[most];
  std::size_t count_ = 0;  // number of entries of `rows_` in use
  // The reason why each rung was left out, by ledger::Rung; LeftOut::none if it was not.
  std::array<LeftOut, ledger::rung_count> left_out_{};
};

}  // namespace cuwarden::rescue
