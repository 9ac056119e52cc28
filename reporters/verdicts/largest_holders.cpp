// Verdicts about the owner that holds most of the device, and about requests without a proof.
#include <algorithm>

#include "reporters/verdicts/predicates.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden::verdicts {

using ledger::Fact;

std::string alternative_of_spilling(const Shortage& shortage) {
  const std::string wants = shortage.spilling_wants();
  if (wants.empty()) return {};
  return ", or set " + wants +
         " if the host has as much memory free (the rest of the request then lies there, which is "
         "slower)";
}

std::optional<Finding<OwnProof>> device_full_own(const Shortage& shortage) {
  const std::uint64_t own = shortage.own();
  if (!shortage.lacks_memory()) return std::nullopt;
  // Spilled memory is not on the device, so it does not count. The program ran with memory that
  // does not grow, such as its first context. So that is no cause if other memory grows.
  const std::uint64_t growing = std::min(shortage.given().growing_bytes, own);
  const bool grows = growing >= *shortage.missing();
  if (!(grows ? shortage.is_the_most_beside_a_context(own) : shortage.is_the_most(own)))
    return std::nullopt;
  return Finding<OwnProof>{{own, grows ? Figure(growing) : std::nullopt, shortage.free_bytes(),
                            shortage.requested_bytes()},
                           "this process holds " + human_bytes(own) + " itself, all of it live" +
                               (grows ? ", and code that allocates more and more holds " +
                                            (human_bytes(growing) == human_bytes(own)
                                                 ? "all of that"
                                                 : human_bytes(growing) + " of that") +
                                            ": look there first"
                                      : ": free or shrink what its top holders allocate") +
                               alternative_of_spilling(shortage)};
}

std::optional<Finding<UnknownProof>> unknown(const Shortage& shortage) {
  const auto missing = shortage.missing();
  return Finding<UnknownProof>{
      {shortage.free_bytes(), shortage.fact(Fact::total_bytes), shortage.requested_bytes()},
      !free_bytes_of(shortage.incident())
          ? "the device's free memory could not be read at that moment"
      : !missing ? "the call's need of memory is not known: see the account of that moment"
      : *missing == 0
          ? "enough memory was free right after: it was freed in between, or the device refused "
            "for another reason (such as a quota that is not known here)"
      : !shortage.incident().fact(Fact::slab_locked_bytes)
          ? "the process's own loss to slabs could not be determined at that moment"
          : "no owner holds as much as was missing: see the account of that moment"};
}

}  // namespace cuwarden::verdicts
