// Waits for states that another thread, another process or a device brings about, but for two
// minutes at most.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace cuwarden {

// Calls is_so() about every 100 us until it returns true, and returns true then. Returns false
// after two minutes. This is far longer than a loaded machine takes: the test is broken then, and
// must fail instead of hanging.
template <class IsSo>
[[nodiscard]] bool comes_about(const IsSo& is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

// Waits until is_so() returns true, for programs that a test runs. After two minutes, aborts the
// program with a line on stderr. `what`: name of the awaited state in that line.
template <class IsSo>
void wait_until(const char* what, const IsSo& is_so) {
  if (comes_about(is_so)) return;
  std::fprintf(stderr, "this has not come about in two minutes: %s\n", what);
  std::abort();
}

}  // namespace cuwarden
