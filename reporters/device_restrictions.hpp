// What keeps a device from being used as it is, whatever is free: its compute mode, the slice of it
// that the process has (MIG), a quota. Without what was asked for, which is the judge's to prove.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reporters/verdicts.hpp"

namespace cuwarden {

// A context that was refused for another reason than too little memory; null: not by the mode.
std::optional<Judgement> forbidden_by_the_compute_mode(const ledger::IncidentView&);

// Of a request that is larger than the slice.
Judgement larger_than_slice(const ledger::IncidentView&, const std::string& slice,
                            std::uint64_t slice_bytes);

// What this process has of a device, live and in all, and what the request would have taken.
struct QuotaUse {
  std::uint64_t live = 0, held = 0, taken = 0;
};
// Null: no quota is known, or the request keeps to it.
std::optional<Judgement> above_the_quota(const ledger::IncidentView&, const QuotaUse&);

}  // namespace cuwarden
