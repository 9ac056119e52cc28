// `top`: tables leave out columns where there is no room for them.
#include <gtest/gtest.h>

#include "tools/cuwarden/top/table.hpp"

namespace cuwarden {
namespace {

using Texts = std::vector<std::string>;

Table table() {
  Table made({{"A", 3, true}, {"B", 3, false, 2}, {"C", 3, false, 1}}, "REST", 1);
  made.add({"1", "2", "3"}, "rest");
  return made;
}

TEST(Tables, without_a_limit_all_columns_are_shown) {
  EXPECT_EQ(table().lines(), (Texts{"  A B   C   REST", "  1 2   3   rest"}));
}

TEST(Tables, the_most_dispensable_column_is_left_out_first) {
  EXPECT_EQ(table().lines(16, 4)[0], "  A B   C   REST");
  EXPECT_EQ(table().lines(15, 4)[0], "  A C   REST");
  EXPECT_EQ(table().lines(11, 4)[0], "  A REST");
}

TEST(Tables, columns_that_are_not_dispensable_stay_without_room) {
  EXPECT_EQ(table().lines(1, 4)[1], "  1 rest");
}

TEST(Tables, a_column_is_as_wide_as_its_widest_text_in_letters) {
  Table made({{"A", 1}}, "", 1);
  made.add({"äöü"}, "x");
  made.add({"b"}, "y");
  EXPECT_EQ(made.lines(), (Texts{"A   ", "äöü x", "b   y"}));
}

}  // namespace
}  // namespace cuwarden
