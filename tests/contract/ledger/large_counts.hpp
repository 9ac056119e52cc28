// The number of repetitions in a test: few by default, many if LARGE_COUNTS is set, as `tools/test
// --full` does.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace cuwarden::ledger {

// Returns how often a test repeats its work: `large` if the environment has LARGE_COUNTS, else
// `daily`.
inline int repetitions(int daily, int large) {
  return std::getenv("LARGE_COUNTS") != nullptr ? large : daily;
}

// Returns the number that the variable `name` of the environment has; `otherwise` if it has none.
inline std::uint64_t chosen(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace cuwarden::ledger
