// The number of repetitions in a test: few by default, fewer under a sanitizer, and many if
// LARGE_COUNTS is set, as `tools/test --full` does.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace cuwarden::test {

// Returns how often a test repeats its work: `large` if the environment has LARGE_COUNTS, else
// `daily`. A program that is built with a sanitizer repeats a fifth of `daily`, because each
// repetition takes 5 to 20 times as long there.
inline std::uint64_t repetitions(std::uint64_t daily, std::uint64_t large) {
  if (std::getenv("LARGE_COUNTS") != nullptr) return large;
#if defined(CUWARDEN_SANITIZED)
  return daily / 5;
#else
  return daily;
#endif
}
// Serves tests that do not repeat their work more often with LARGE_COUNTS.
inline std::uint64_t repetitions(std::uint64_t daily) { return repetitions(daily, daily); }

// Returns the number that the variable `name` of the environment has; `otherwise` if it has none.
inline std::uint64_t chosen(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace cuwarden::test
