// Counts of compared stacks since a test began.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/contract/stacks/probe.hpp"

// Returns `count`, in a way that the compiler cannot see through: for the bound of a loop that must
// not be unrolled. Each copy of an unrolled loop's code would have a stack of its own.
inline int times(int count) {
  asm volatile("" : "+r"(count));
  return count;
}

// Compares the results of several ways to walk the calling function's stack. Never a tail call, so
// this function's frame is on the stack. Fails the test if they differ. Returns the number of
// frames; -1 if the stacks differ.
inline int compared() {
  const int frames = compare_stacks();
  asm volatile("" ::: "memory");
  EXPECT_NE(frames, -1) << last_difference();
  return frames;
}

// Fails the test, when the object is destroyed, if no stack was compared since it was made or if
// the walks of a stack differed.
class Comparing {
 public:
  Comparing() : before_(stacks_seen()) {}
  ~Comparing() {
    EXPECT_GT(compared(), 0u);
    EXPECT_EQ(different(), 0u) << last_difference();
  }
  Comparing(const Comparing&) = delete;
  Comparing& operator=(const Comparing&) = delete;

  // Returns the number of stacks that were compared since this object was made.
  std::uint64_t compared() const { return stacks_seen().compared - before_.compared; }
  // Returns the number of stacks since this object was made whose walks differed from each other.
  std::uint64_t different() const { return stacks_seen().different - before_.different; }
  // Returns the number of stacks since this object was made that were recognised without a walk.
  std::uint64_t recognised() const { return stacks_seen().recognised - before_.recognised; }
  // Returns the number of walks since this object was made that ended at a frame whose unwind table
  // is too complex for cuwarden's unwind rules.
  std::uint64_t not_expressible() const {
    return stacks_seen().not_expressible - before_.not_expressible;
  }
  // Returns the number of walks since this object was made that ended in code of no module, such as
  // a JIT compiler's.
  std::uint64_t foreign_code() const { return stacks_seen().foreign_code - before_.foreign_code; }
  // Returns the number of walks since this object was made that ended in code for which its module
  // has no unwind table.
  std::uint64_t no_description() const {
    return stacks_seen().no_description - before_.no_description;
  }
  // Returns the number of walks since this object was made that ended at a frame whose address
  // cannot be read.
  std::uint64_t unreadable() const { return stacks_seen().unreadable - before_.unreadable; }

 private:
  // Counts of the stacks that the process had walked or compared when this object was made.
  StacksSeen before_;
};
