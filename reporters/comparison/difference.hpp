// The difference between the leaks of two reports, or of a report and a baseline, by fingerprint.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "reporters/comparison/leaks_by_fingerprint.hpp"

namespace cuwarden {

// A fingerprint, with its leaks before and now. The pointers are not owned.
struct ChangedLeak {
  const std::string* fingerprint = nullptr;   // never null
  const FingerprintedLeak* before = nullptr;  // null: the leak is new
  const FingerprintedLeak* now = nullptr;     // null: the leak is gone
};

// The leaks that changed, the largest first: by their bytes, for changed figures by the change. A
// leak has grown if it has more bytes or more allocations than before.
struct Difference {
  std::vector<ChangedLeak> added, grown, shrunk, gone;
  std::size_t unchanged = 0;   // number of fingerprints whose figures are the same
  std::size_t suppressed = 0;  // number of fingerprints that are suppressed now, and so not gone
};

// Compares the leaks. The result points into `before` and `now`. `suppressed`: fingerprints of
// leaks that are suppressed now.
Difference difference_of(const LeaksByFingerprint& before, const LeaksByFingerprint& now,
                         const std::set<std::string>& suppressed = {});

// Returns the difference as text: a line with the sums, one with the numbers of changed leaks, then
// the new, grown, smaller and gone leaks with their fingerprints and, if they are known, call
// stacks. `with`: path of the report or baseline with the leaks `before`. `top`: most leaks of each
// of these four that are shown; 0: all.
std::string difference_text(const std::string& with, const LeaksByFingerprint& before,
                            const LeaksByFingerprint& now, const Difference&, std::size_t top,
                            const Style&);

}  // namespace cuwarden
