// Waits for states that another thread, another process or a device brings about, but for two
// minutes at most.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace cuwarden {

// Longest time for which tests wait for a state. A loaded machine takes far less: after this time
// the test is broken, and must fail instead of hanging.
inline constexpr std::chrono::minutes longest_wait{2};

// Calls is_so() again and again until it returns true, and returns true then. Returns false after
// longest_wait. `pause`: called between two calls of is_so().
template <class IsSo, class Pause>
[[nodiscard]] bool comes_about(const IsSo& is_so, const Pause& pause) {
  const auto end = std::chrono::steady_clock::now() + longest_wait;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    pause();
  }
  return true;
}

// Calls is_so() about every 100 us until it returns true, and returns true then. Returns false
// after longest_wait.
template <class IsSo>
[[nodiscard]] bool comes_about(const IsSo& is_so) {
  return comes_about(is_so, [] { std::this_thread::sleep_for(std::chrono::microseconds(100)); });
}

namespace detail {
[[noreturn]] inline void abort_waiting_for(const char* what) {
  std::fprintf(stderr, "this has not come about in two minutes: %s\n", what);
  std::abort();
}
}  // namespace detail

// Waits until is_so() returns true, for programs that a test runs. After longest_wait, aborts the
// program with a line on stderr. `what`: name of the awaited state in that line.
template <class IsSo>
void wait_until(const char* what, const IsSo& is_so) {
  if (!comes_about(is_so)) detail::abort_waiting_for(what);
}

// Waits as wait_until() does, but does not sleep: for threads that are to go on at the same moment.
template <class IsSo>
void wait_awake_until(const char* what, const IsSo& is_so) {
  if (!comes_about(is_so, [] { std::this_thread::yield(); })) detail::abort_waiting_for(what);
}

}  // namespace cuwarden
