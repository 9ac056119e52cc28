// The shim's part in a session, for tests: listeners that do nothing. A test overrides what it is
// about.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/hooks/call/session.hpp"
#include "tests/unit/quiet_process.hpp"

namespace cuwarden::hooks {

// The shim's part in a session, for tests: listeners that do nothing. A test overrides the
// functions that it is about.
struct QuietShim : tracking::CompletenessListener, serving::NoticeWriter, rescue::IncidentProbes {
  virtual ~QuietShim() = default;
  // Does nothing when the ledger has become incomplete.
  void ledger_is_incomplete(ledger::Reason) noexcept override {}
  // Writes no message to the user.
  void write(serving::Notice, DeviceOrdinal, std::uint64_t, std::uint64_t) noexcept override {}
  // Writes no message about a reclaimer.
  void write(serving::ReclaimerFailure, std::string_view, std::uint64_t) noexcept override {}
  // Adds no facts to an incident.
  void explain(rescue::Incident&) noexcept override {}
  // Does nothing when the outcome of an incident is known.
  void settled(const rescue::Incident&, rescue::Outcome) noexcept override {}
  // Does nothing when a request of an incident is refused again.
  void failed_again(const rescue::Incident&, IncidentId) noexcept override {}

  // Returns the parts of the shim that a session calls: this object and `process`. `clock`: the one
  // on which the session serves refused requests. `spill`: limits of spilling; none without it.
  Surroundings around(Clock& clock = system_clock, const pool::SpillSettings& spill = {}) {
    return {.process = process,
            .completeness = *this,
            .notices = *this,
            .probes = *this,
            .clock = clock,
            .spill = spill};
  }
  // The process that a session asks questions about.
  QuietProcess process;
};

}  // namespace cuwarden::hooks
