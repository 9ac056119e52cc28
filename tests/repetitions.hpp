// The number of repetitions in a test: few by default, fewer under a sanitizer, and many if
// LARGE_COUNTS is set, as `tools/test --full` does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace cuwarden::test {

// True in a program that is built with a sanitizer. Each repetition takes 5 to 20 times as long
// there.
#if defined(CUWARDEN_SANITIZED)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

// Returns how often a test repeats its work: `count`, or a fifth of it under a sanitizer, but at
// least 1.
constexpr std::uint64_t repetitions(std::uint64_t count) {
  return is_sanitized ? std::max<std::uint64_t>(count / 5, 1) : count;
}
// Returns how often a test repeats its work: `large` if the environment has LARGE_COUNTS, also
// under a sanitizer. Otherwise repetitions(daily).
inline std::uint64_t repetitions(std::uint64_t daily, std::uint64_t large) {
  return std::getenv("LARGE_COUNTS") != nullptr ? large : repetitions(daily);
}

// Returns the number that the variable `name` of the environment has; `otherwise` if it has none.
inline std::uint64_t chosen(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace cuwarden::test
