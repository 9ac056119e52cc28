// Judges why a request was refused. The verdict follows from facts of that moment alone, and each
// has the figures that prove it. verdicts.def lists the verdicts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reporters/model/values.hpp"
#include "reporters/verdicts/incident_case.hpp"

namespace cuwarden {

enum class Verdict : std::uint8_t {
#define VERDICT(name, Proof, meaning) name,
#include "reporters/verdicts/verdicts.def"
#undef VERDICT
};
std::string_view verdict_name(Verdict) noexcept;

// A verdict with its proof, and one line of advice for the user.
struct Judgement {
  Verdict verdict = Verdict::unknown;
  model::Proof proof;
  std::string advice;
};
// Returns the verdict of the first predicate in verdicts.def that holds.
Judgement judge(const IncidentCase&);

}  // namespace cuwarden
