// The difference, by fingerprint, between the leaks of two reports, or of a report and a baseline
// (file of known leaks).
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "reporters/comparison/leaks_by_fingerprint.hpp"

namespace cuwarden {

// A leak that differs between an earlier report or baseline and a later report, as it was in each.
// The pointers are not owned.
struct ChangedLeak {
  const std::string* fingerprint = nullptr;  // fingerprint of the leak; never null in a Difference
  // Leak in the earlier report or the baseline; null: the leak is new.
  const FingerprintedLeak* before = nullptr;
  const FingerprintedLeak* now = nullptr;  // leak in the later report; null: the leak is gone
};

// The leaks that differ between an earlier report or baseline and a later report. A leak has grown
// if it has more bytes or more allocations than before. Each list is sorted, largest first: new and
// gone leaks by their bytes, the others by the change of their bytes.
struct Difference {
  std::vector<ChangedLeak> added, grown, shrunk, gone;
  // Number of leaks with the same bytes and number of allocations in both.
  std::size_t unchanged = 0;
  // Number of leaks that only the earlier report or baseline lists, because a suppression hides
  // them in the later report. They are not in `gone`.
  std::size_t suppressed = 0;
};

// Compares the leaks of an earlier report (`before`) with those of a later one (`now`). The result
// points into both. `suppressed`: fingerprints of leaks that are suppressed in the later report,
// and so do not count as gone.
Difference difference_of(const LeaksByFingerprint& before, const LeaksByFingerprint& now,
                         const std::set<std::string>& suppressed = {});

// Returns the difference as text. A line has the sums, and one the numbers of changed leaks. Then
// the new, grown, smaller and gone leaks follow, with fingerprints and, if they are known, call
// stacks. `with`: path of the report or baseline that has the leaks `before`. `top`: most leaks
// that are shown of each of the four kinds; 0: all.
std::string difference_text(const std::string& with, const LeaksByFingerprint& before,
                            const LeaksByFingerprint& now, const Difference&, std::size_t top,
                            const Style&);

}  // namespace cuwarden
