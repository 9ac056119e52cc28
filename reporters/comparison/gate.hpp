// Checks of leaks that a job of continuous integration may ask for.
#pragma once

#include <optional>
#include <string>

#include "reporters/comparison/difference.hpp"
#include "reporters/comparison/leaks_by_fingerprint.hpp"

namespace cuwarden {

// The leaks that fail a check: none; those with allocations to which no pointer is left; all.
enum class FailingLeaks { none, lost, all };

// The checks that the user asks for.
struct Gate {
  FailingLeaks on_leak = FailingLeaks::none;  // leaks that fail the check
  bool on_new = false;     // true: a leak that was not there before fails the check
  bool on_growth = false;  // true: a leak that is larger than before fails the check
  // True if any check is asked for.
  bool is_asked_for() const { return on_leak != FailingLeaks::none || on_new || on_growth; }
};

// The outcome of the checks.
struct GateOutcome {
  bool failed = false;    // true if a check failed, or could not be made
  bool by_doubt = false;  // true if no leak failed a check, but leaks may be missing
  // One line that begins with "FAIL" or "OK", such as "FAIL: 3 leaks, 1 new: cache.cpp:41 in
  // Cache::insert".
  std::string line;
};

// Makes the checks. `difference`: change of the leaks `now`; with no leak if the gate compares
// nothing. `doubt`: reason why leaks may be missing in `now`; null: none is. Without a leak that
// fails the check, a doubt fails it.
GateOutcome judge(const Gate&, const LeaksByFingerprint& now, const Difference& difference,
                  const std::optional<std::string>& doubt);

}  // namespace cuwarden
