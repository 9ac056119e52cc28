// How often a test repeats what it does: few times daily, many when the large counts are asked for
// (`tools/test --full` sets LARGE_COUNTS).
#pragma once

#include <cstdlib>

namespace cuwarden::ledger {

inline int repetitions(int daily, int large) {
  return std::getenv("LARGE_COUNTS") != nullptr ? large : daily;
}

}  // namespace cuwarden::ledger
