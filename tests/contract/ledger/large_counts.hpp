// The number of repetitions in a test: few by default, many if LARGE_COUNTS is set, as `tools/test
// --full` does.
#pragma once

#include <cstdlib>

namespace cuwarden::ledger {

// Returns `large` if large counts are asked for, else `daily`.
inline int repetitions(int daily, int large) {
  return std::getenv("LARGE_COUNTS") != nullptr ? large : daily;
}

}  // namespace cuwarden::ledger
