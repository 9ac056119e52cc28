// The predicates of verdicts (causes for which a request is refused), one for each row of
// verdicts.def. A predicate tells if the verdict's cause explains the refusal.
#pragma once

#include <optional>
#include <string>

#include "reporters/verdicts/proofs.hpp"
#include "reporters/verdicts/shortage.hpp"

namespace cuwarden::verdicts {

// The result of a verdict's predicate that holds. `Proof`: the verdict's struct in proofs.hpp.
template <class Proof>
struct Finding {
  Proof proof;         // figures that prove the verdict, which is the cause
  std::string advice;  // one line of advice for the user
};
// Deduction guide: Clang 14 deduces no template arguments of an aggregate by itself.
template <class Proof>
Finding(Proof, std::string) -> Finding<Proof>;

// Declares a predicate of the name of each verdict. A predicate returns the finding if its
// verdict's cause explains the refused request, else null. That of `unknown` never returns null.
#define VERDICT(name, Proof, meaning) std::optional<Finding<Proof>> name(const Shortage&);
#include "reporters/verdicts/verdicts.def"
#undef VERDICT

// Returns the part of an advice that names the settings for serving the request with host memory,
// such as ", or set CUWARDEN_SPILL=2GiB if ...". Empty if no setting would have changed that.
std::string alternative_of_spilling(const Shortage&);

// Returns the end of an advice, which names the largest reserves of libraries in the memory that
// was asked for. A reserve is memory that a library keeps for itself. The call that gives it back
// is named, too, or the setting that limits it if there is no such call. Empty if no reserve is of
// a size that matters.
std::string advice_on_reserves(const Shortage&);

}  // namespace cuwarden::verdicts
