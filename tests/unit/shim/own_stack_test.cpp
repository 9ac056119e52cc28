// The stack on which reports are written.
#include "shim/support/own_stack.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Range {
  std::uintptr_t start = 0, end = 0;
  std::string access;
};

std::vector<Range> mapped_ranges() {
  std::vector<Range> ranges;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Range range;
    char dash = 0;
    std::istringstream(line) >> std::hex >> range.start >> dash >> range.end >> range.access;
    ranges.push_back(range);
  }
  return ranges;
}

TEST(ReportStack, the_report_stack_is_not_the_callers) {
  struct Seen {
    std::uintptr_t here = 0;
  } seen;
  cuwarden::shim::call_on_own_stack(
      [](void* argument) {
        int local = 0;
        static_cast<Seen*>(argument)->here = reinterpret_cast<std::uintptr_t>(&local);
      },
      &seen);
  const auto own = reinterpret_cast<std::uintptr_t>(&seen);
  EXPECT_NE(seen.here, 0u);
  EXPECT_GT(own > seen.here ? own - seen.here : seen.here - own, std::uintptr_t{1} << 20);
}

TEST(ReportStack, the_report_stack_ends_in_a_page_without_access) {
  struct Seen {
    std::uintptr_t here = 0;
    std::vector<Range> ranges;
  } seen;
  cuwarden::shim::call_on_own_stack(
      [](void* argument) {
        int local = 0;
        auto& noted = *static_cast<Seen*>(argument);
        noted.here = reinterpret_cast<std::uintptr_t>(&local);
        noted.ranges = mapped_ranges();
      },
      &seen);
  for (std::size_t i = 1; i < seen.ranges.size(); ++i) {
    const Range& stack = seen.ranges[i];
    if (seen.here < stack.start || seen.here >= stack.end) continue;
    EXPECT_EQ(stack.access.substr(0, 3), "rw-");
    EXPECT_EQ(seen.ranges[i - 1].end, stack.start);
    EXPECT_EQ(seen.ranges[i - 1].access.substr(0, 3), "---");
    return;
  }
  FAIL() << "the stack is in no mapping";
}

TEST(ReportStack, exceptions_can_be_thrown_and_caught_on_the_report_stack) {
  bool caught = false;
  cuwarden::shim::call_on_own_stack(
      [](void* argument) {
        try {
          throw 1;
        } catch (int) {
          *static_cast<bool*>(argument) = true;
        }
      },
      &caught);
  EXPECT_TRUE(caught);
}

}  // namespace
