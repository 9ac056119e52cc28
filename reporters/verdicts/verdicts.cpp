#include "reporters/verdicts/verdicts.hpp"

#include <utility>

#include "reporters/verdicts/predicates.hpp"

namespace cuwarden {
namespace {

template <class Proof>
Judgement judgement_of(Verdict verdict, verdicts::Finding<Proof>&& found) {
  Judgement judgement{verdict, {}, std::move(found.advice)};
  model::each_field(found.proof, [&](std::string_view name, auto& value, auto) {
    if (value) judgement.proof.emplace_back(name, std::move(*value));
  });
  return judgement;
}

// True if the advice on this verdict also names reserves of libraries: more free memory would have
// changed the refusal, and waiting for pending frees would not.
constexpr bool is_helped_by_reserves(Verdict verdict) {
  return verdict == Verdict::host_ram_exhausted || verdict > Verdict::pending_frees;
}

Judgement first_that_holds(const Shortage& shortage) {
#define VERDICT(name, Proof, meaning) \
  if (auto found = verdicts::name(shortage)) return judgement_of(Verdict::name, std::move(*found));
#include "reporters/verdicts/verdicts.def"
#undef VERDICT
  return {};
}

}  // namespace

std::string_view verdict_name(Verdict verdict) noexcept {
  constexpr std::string_view names[] = {
#define VERDICT(name, Proof, meaning) #name,
#include "reporters/verdicts/verdicts.def"
#undef VERDICT
  };
  return names[static_cast<std::size_t>(verdict)];
}

Judgement judge(const IncidentCase& given) {
  const Shortage shortage(given);
  Judgement made = first_that_holds(shortage);
  if (is_helped_by_reserves(made.verdict)) made.advice += verdicts::advice_on_reserves(shortage);
  return made;
}

}  // namespace cuwarden
