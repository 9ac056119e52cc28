// Why a request was refused. The verdict follows from facts of that moment alone, and each has the
// figures that prove it: what fits none is `unknown`.
#pragma once

#include <string>
#include <string_view>

#include "reporters/incident_case.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden {

enum class Verdict : std::uint8_t {
  size_overflow,
  address_space_gap,
  host_ram_exhausted,
  device_restricted,
  larger_than_device,
  implicit_memory,
  pending_frees,
  slab_fragmentation,
  held_by_framework,
  held_by_other_processes,
  held_by_unlisted_owner,
  device_full_own,
  unknown,
};
std::string_view verdict_name(Verdict) noexcept;

struct Judgement {
  Verdict verdict = Verdict::unknown;
  model::Proof proof;
  std::string advice;
};
Judgement judge(const IncidentCase&);

// Adds a fact to a proof, unless it is unknown or says that there is no limit.
void prove(model::Proof&, const char* name, std::optional<std::uint64_t> fact);

}  // namespace cuwarden
