// Requests that meet the host's limits: addresses, and memory that is page-locked. None of the
// device's figures says anything about them. Without what was asked for, which is the judge's to
// prove.
#pragma once

#include <optional>

#include "reporters/verdicts.hpp"

namespace cuwarden {

// What lies, or may lie, in the host's memory.
constexpr bool is_host_memory(Kind kind) {
  return kind == Kind::pinned || kind == Kind::registered || kind == Kind::managed;
}

// Null: there are enough.
std::optional<Judgement> lacks_addresses(const IncidentCase&);
std::optional<Judgement> lacks_host_memory(const IncidentCase&);

}  // namespace cuwarden
