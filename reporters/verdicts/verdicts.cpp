#include "reporters/verdicts/verdicts.hpp"

#include <algorithm>
#include <iterator>
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

// Says if the advice on a verdict also names reserves of libraries.
enum class Advice : std::uint8_t { without_reserves, with_reserves };

// A row of verdicts.def, without the struct of its proof and its meaning.
struct VerdictRow {
  std::string_view name;
  NamedHolders holders;
  Advice advice;
};
constexpr VerdictRow verdict_rows[] = {
#define VERDICT(name, Proof, holders, reserves, meaning) \
  {#name, NamedHolders::holders, Advice::reserves},
#include "reporters/verdicts/verdicts.def"
#undef VERDICT
};

constexpr const VerdictRow& row_of(Verdict verdict) {
  return verdict_rows[static_cast<std::size_t>(verdict)];
}

Judgement first_that_holds(const Shortage& shortage) {
#define VERDICT(name, Proof, holders, reserves, meaning) \
  if (auto found = verdicts::name(shortage)) return judgement_of(Verdict::name, std::move(*found));
#include "reporters/verdicts/verdicts.def"
#undef VERDICT
  return {};
}

}  // namespace

std::string_view verdict_name(Verdict verdict) noexcept { return row_of(verdict).name; }

NamedHolders named_holders(std::string_view verdict) noexcept {
  const auto* const row = std::ranges::find(verdict_rows, verdict, &VerdictRow::name);
  return row == std::end(verdict_rows) ? NamedHolders::none : row->holders;
}

Judgement judge(const IncidentCase& given) {
  const Shortage shortage(given);
  Judgement made = first_that_holds(shortage);
  if (row_of(made.verdict).advice == Advice::with_reserves)
    made.advice += verdicts::advice_on_reserves(shortage);
  return made;
}

}  // namespace cuwarden
