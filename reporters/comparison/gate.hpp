// Checks by which leaks let a job of continuous integration fail.
#pragma once

#include <optional>
#include <string>

#include "reporters/comparison/difference.hpp"
#include "reporters/comparison/leaks_by_fingerprint.hpp"

namespace cuwarden {

// The leaks that fail a check. `none`: no leaks. `lost`: leaks with allocations to which no pointer
// is left. `all`: all leaks.
enum class FailingLeaks { none, lost, all };

// The checks of leaks for which the user has asked.
struct Gate {
  FailingLeaks on_leak = FailingLeaks::none;  // leaks that fail the check
  bool on_new = false;  // True if a leak that the earlier report or baseline lacks fails the check.
  // True if a leak that has grown since the earlier report or baseline fails the check.
  bool on_growth = false;
  // True if the user has asked for any check.
  bool is_asked_for() const { return on_leak != FailingLeaks::none || on_new || on_growth; }
};

// The outcome of the checks of leaks for which a Gate asks.
struct GateOutcome {
  bool failed = false;  // true if a leak failed a check, or if leaks may be missing from the report
  // True if no leak failed a check, but leaks may be missing from the report.
  bool by_doubt = false;
  // Line about the outcome. It begins with "FAIL" or "OK": "FAIL: 3 leaks, 1 new: cache.cpp:41 in
  // Cache::insert".
  std::string line;
};

// Makes the checks of the leaks `now`. `difference`: their change since an earlier report or
// baseline; empty if there is none. `doubt`: reason why leaks may be missing from `now`; null:
// there is none. A doubt fails the check even if no leak does.
GateOutcome judge(const Gate&, const LeaksByFingerprint& now, const Difference& difference,
                  const std::optional<std::string>& doubt);

}  // namespace cuwarden
