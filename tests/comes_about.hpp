// Waits for what another thread, another process or a device brings about, but not for ever.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace cuwarden {

// Looks about every 100 us until is_so() returns true, and returns true then. Returns false if it
// has not become true in two minutes: far longer than a loaded machine takes, so that the test is
// broken, and must fail instead of hanging.
template <class IsSo>
[[nodiscard]] bool comes_about(const IsSo& is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

// Does as comes_about(), for programs that a test runs. Aborts the program, with a line on stderr
// that names the state `what`, if that has not come about in two minutes.
template <class IsSo>
void wait_until(const char* what, const IsSo& is_so) {
  if (comes_about(is_so)) return;
  std::fprintf(stderr, "this has not come about in two minutes: %s\n", what);
  std::abort();
}

}  // namespace cuwarden
