// The predicates of verdicts, one for each row of verdicts.def. A verdict is a cause for which a
// request is refused. Its predicate is true if this cause explains the refusal.
#pragma once

#include <optional>
#include <string>

#include "reporters/verdicts/proofs.hpp"
#include "reporters/verdicts/shortage.hpp"

namespace cuwarden::verdicts {

// The result of a verdict's predicate if the verdict holds. `Proof`: the verdict's struct in
// proofs.hpp.
template <class Proof>
struct Finding {
  Proof proof;         // figures that prove the verdict (the cause of the refusal)
  std::string advice;  // one line of advice for the user about the refusal
};
// Deduction guide: Clang 14 deduces no template arguments of an aggregate by itself.
template <class Proof>
Finding(Proof, std::string) -> Finding<Proof>;

// Declares the predicate of each verdict, a function of the verdict's name. It returns the finding
// if the verdict's cause explains the refused request; otherwise null. unknown() never returns
// null.
#define VERDICT(name, Proof, holders, reserves, meaning) \
  std::optional<Finding<Proof>> name(const Shortage&);
#include "reporters/verdicts/verdicts.def"
#undef VERDICT

// Returns the part of an advice that names the settings by which host memory would have served the
// request, such as ", or set CUWARDEN_SPILL=2GiB if ...". Empty if no setting would have served it.
std::string alternative_of_spilling(const Shortage&);

// Returns the end of an advice on reserves: memory that libraries keep for themselves. It names the
// two largest reserves, at most, in the device (or host) memory that was asked for. For each it
// names the call that gives the memory back, or the setting that limits it if there is no such
// call. Empty if no reserve is large enough to matter.
std::string advice_on_reserves(const Shortage&);

}  // namespace cuwarden::verdicts
