// Suppressions that matched nothing in any of several reports.
#include "reporters/comparison/unmatched_suppressions.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace cuwarden {
namespace {

using Rules = std::vector<model::Suppression>;

TEST(UnmatchedSuppressions, are_those_that_matched_in_no_report) {
  UnmatchedSuppressions unmatched;
  EXPECT_FALSE(unmatched.has_any());
  unmatched.add(Rules{{"f", 0, 0, 0}, {"h", 0, 0, 0}, {"g", 1, 2, 3}});
  EXPECT_EQ(unmatched.text(),
            "suppressions that matched nothing in 1 report:\n    leak:f\n    leak:h\n");
  unmatched.add(Rules{{"f", 2, 2, 0}, {"g", 0, 0, 0}, {"a\nb", {}, {}, {}}, {"h", 0, 0, 0}});
  EXPECT_TRUE(unmatched.has_any());
  EXPECT_EQ(unmatched.text(),
            "suppressions that matched nothing in 2 reports:\n    leak:h\n    leak:a?b\n");
  unmatched.add(Rules{{"h", 1, 1, 1}, {"a\nb", 1, 1, 1}});
  EXPECT_FALSE(unmatched.has_any());
  EXPECT_EQ(unmatched.text(), "");
}

TEST(UnmatchedSuppressions, have_only_the_patterns_that_are_asked_for) {
  UnmatchedSuppressions unmatched;
  unmatched.add(Rules{{"f", 0, 0, 0}, {"g", 0, 0, 0}}, {"g", "h"});
  EXPECT_EQ(unmatched.text(), "suppressions that matched nothing in 1 report:\n    leak:g\n");
}

}  // namespace
}  // namespace cuwarden
