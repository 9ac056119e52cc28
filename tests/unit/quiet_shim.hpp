// The shim's part in a session, for tests: listeners that do nothing. A test overrides what it is
// about.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/hooks/call/session.hpp"
#include "tests/unit/quiet_process.hpp"

namespace cuwarden::hooks {

struct QuietShim : tracking::CompletenessListener, serving::NoticeWriter, rescue::IncidentProbes {
  virtual ~QuietShim() = default;
  void ledger_is_incomplete(ledger::Reason) noexcept override {}
  void write(serving::Notice, DeviceOrdinal, std::uint64_t, std::uint64_t) noexcept override {}
  void write(serving::ReclaimerFailure, std::string_view, std::uint64_t) noexcept override {}
  void explain(rescue::Incident&) noexcept override {}
  void settled(const rescue::Incident&, bool) noexcept override {}

  // `clock`: the one on which the session serves refused requests.
  Surroundings around(Clock& clock = system_clock) { return {process, *this, *this, *this, clock}; }
  QuietProcess process;
};

}  // namespace cuwarden::hooks
