// The predicates of verdicts, one for each row of verdicts.def.
#pragma once

#include <optional>
#include <string>

#include "reporters/verdicts/proofs.hpp"
#include "reporters/verdicts/shortage.hpp"

namespace cuwarden::verdicts {

// The result of a predicate that holds: the verdict's figures, and one line of advice for the user.
template <class Proof>
struct Finding {
  Proof proof;
  std::string advice;
};
// Clang 14 deduces no arguments of an aggregate by itself.
template <class Proof>
Finding(Proof, std::string) -> Finding<Proof>;

// Each returns null if the verdict does not hold.
#define VERDICT(name, Proof, meaning) std::optional<Finding<Proof>> name(const Shortage&);
#include "reporters/verdicts/verdicts.def"
#undef VERDICT

}  // namespace cuwarden::verdicts
