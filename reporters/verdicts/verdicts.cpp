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
#define VERDICT(name, Proof, meaning) \
  if (auto found = verdicts::name(shortage)) return judgement_of(Verdict::name, std::move(*found));
#include "reporters/verdicts/verdicts.def"
#undef VERDICT
  return {};
}

}  // namespace cuwarden
