// Counts of compared stacks since a test began.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

#include "tests/contract/stacks/probe.hpp"

// Returns `large` if the environment has LARGE_COUNTS, else `daily`.
inline std::uint64_t repetitions(std::uint64_t daily, std::uint64_t large) {
  return std::getenv("LARGE_COUNTS") != nullptr ? large : daily;
}

// Returns `count`, hidden from the compiler: in an unrolled loop each turn would have an address,
// and so a stack, of its own.
inline int times(int count) {
  asm volatile("" : "+r"(count));
  return count;
}

// Compares the stacks in the calling function; the call does not become a jump. Returns the number
// of frames.
inline int compared() {
  const int frames = compare_stacks();
  asm volatile("" ::: "memory");
  EXPECT_NE(frames, -1) << last_difference();
  return frames;
}

// Expects at its end that stacks were compared since its beginning and that none differed. The
// functions return counts since its beginning.
class Comparing {
 public:
  Comparing() : before_(stacks_seen()) {}
  ~Comparing() {
    EXPECT_GT(compared(), 0u);
    EXPECT_EQ(different(), 0u) << last_difference();
  }
  Comparing(const Comparing&) = delete;
  Comparing& operator=(const Comparing&) = delete;

  std::uint64_t compared() const { return stacks_seen().compared - before_.compared; }
  std::uint64_t different() const { return stacks_seen().different - before_.different; }
  std::uint64_t recognised() const { return stacks_seen().recognised - before_.recognised; }
  std::uint64_t not_expressible() const {
    return stacks_seen().not_expressible - before_.not_expressible;
  }
  std::uint64_t foreign_code() const { return stacks_seen().foreign_code - before_.foreign_code; }
  std::uint64_t no_description() const {
    return stacks_seen().no_description - before_.no_description;
  }
  std::uint64_t unreadable() const { return stacks_seen().unreadable - before_.unreadable; }

 private:
  StacksSeen before_;
};
