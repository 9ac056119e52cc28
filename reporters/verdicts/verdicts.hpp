// Judges why a request was refused. The verdict is the cause: it follows from the facts that were
// known at the refusal, and has figures that prove it. verdicts.def lists the verdicts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reporters/model/values.hpp"
#include "reporters/verdicts/incident_case.hpp"

namespace cuwarden {

// The causes for which a request may be refused: the rows of verdicts.def, in their order.
enum class Verdict : std::uint8_t {
#define VERDICT(name, Proof, holders, reserves, meaning) name,
#include "reporters/verdicts/verdicts.def"
#undef VERDICT
};
// Returns the verdict's name in the report, such as "slab_fragmentation": the name of the
// enumerator.
std::string_view verdict_name(Verdict) noexcept;

// Holders of memory to which the text report attributes a refusal. Beside them, every refused
// request has a list of the call stacks that held memory.
enum class NamedHolders : std::uint8_t {
  none,          // no holder
  own,           // call stacks of this process; the headline names the first of top_holders()
  own_in_slabs,  // the call stack of this process that locks most memory in slabs; as `own`
  others,  // owners outside this process; in a job, the report says what this process is there
};
// Returns the holders to which the text report attributes a refusal for the cause `verdict`, a name
// from a report. Returns NamedHolders::none if no verdict has the name.
NamedHolders named_holders(std::string_view verdict) noexcept;

// The cause for which a request was refused.
struct Judgement {
  Verdict verdict = Verdict::unknown;  // cause of the refusal; `unknown`: no cause is proven
  model::Proof proof;  // figures that prove the verdict, by name; unknown ones are left out
  std::string advice;  // one line of advice for the user about the refusal
};
// Judges a refused request: returns the first verdict of verdicts.def whose predicate holds, with
// its proof and advice. The last one, `unknown`, always holds.
Judgement judge(const IncidentCase&);

}  // namespace cuwarden
