// For the tests of stacks: counts since the test began.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

#include "tests/contract/stacks/probe.hpp"

// Few times daily, many when the large counts are asked for.
inline std::uint64_t repetitions(std::uint64_t daily, std::uint64_t large) {
  return std::getenv("LARGE_COUNTS") != nullptr ? large : daily;
}

// So often that compilers cannot know it: a loop that is unrolled has a place of its own for each
// turn, and each is another stack.
inline int times(int count) {
  asm volatile("" : "+r"(count));
  return count;
}

// A comparison here, that must not become a jump.
inline int compared() {
  const int frames = compare_stacks();
  asm volatile("" ::: "memory");
  EXPECT_NE(frames, -1) << last_difference();
  return frames;
}

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
