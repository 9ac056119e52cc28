// The difference between two sets of leaks, and the checks that fail by it.
#include "reporters/comparison/difference.hpp"

#include <gtest/gtest.h>

#include "reporters/comparison/gate.hpp"

namespace cuwarden {
namespace {

FingerprintedLeak leak(std::uint64_t count, std::uint64_t bytes, std::string where = "f in app") {
  return {.kind = "device",
          .api = "cudaMalloc",
          .count = count,
          .bytes = bytes,
          .caller = where,
          .where = where};
}

const LeaksByFingerprint first_leaks = {
    {"same", leak(2, 200)}, {"more bytes", leak(2, 200)}, {"more allocations", leak(2, 200)},
    {"less", leak(2, 200)}, {"gone", leak(1, 50)},
};
const LeaksByFingerprint now = {
    {"same", leak(2, 200)},
    {"more bytes", leak(2, 900, "grow.cpp:3 in g")},
    {"more allocations", leak(3, 200)},
    {"less", leak(1, 100)},
    {"small", leak(1, 10)},
    {"large", leak(1, 5000, "cache.cpp:41 in Cache::insert")},
};

std::string names(const std::vector<ChangedLeak>& leaks) {
  std::string text;
  for (const ChangedLeak& leak : leaks) text += *leak.fingerprint + ";";
  return text;
}

TEST(Differences, are_new_grown_smaller_and_gone_leaks_the_largest_first) {
  const Difference difference = difference_of(first_leaks, now);
  EXPECT_EQ(names(difference.added), "large;small;");
  EXPECT_EQ(names(difference.grown), "more bytes;more allocations;");
  EXPECT_EQ(names(difference.shrunk), "less;");
  EXPECT_EQ(names(difference.gone), "gone;");
  EXPECT_EQ(difference.unchanged, 1u);
}

TEST(Differences, in_text_have_sums_and_a_line_for_each_leak) {
  const std::string text = difference_text("old.json", first_leaks, now,
                                           difference_of(first_leaks, now), 1, Style(false));
  EXPECT_EQ(text,
            "COMPARED WITH old.json: 6.3 KiB in 10 allocations not freed, before 850 B in 9 "
            "allocations\n"
            "  leaks: 2 new, 2 grown, 1 smaller, 1 unchanged, 1 gone\n"
            "\nNEW\n"
            " 1. 4.9 KiB in 1 allocation · device memory · cudaMalloc · large\n"
            "       cache.cpp:41 in Cache::insert\n"
            "  … 1 more; --top 0 shows all\n"
            "\nGROWN\n"
            " 1. 900 B in 2 allocations, before 200 B in 2 allocations · device memory · "
            "cudaMalloc · more bytes\n"
            "       grow.cpp:3 in g\n"
            "  … 1 more; --top 0 shows all\n"
            "\nSMALLER\n"
            " 1. 100 B in 1 allocation, before 200 B in 2 allocations · device memory · "
            "cudaMalloc · less\n"
            "       f in app\n"
            "\nGONE\n"
            " 1. 50 B in 1 allocation · device memory · cudaMalloc · gone\n"
            "       f in app\n");
}

TEST(Differences, are_growth_if_either_figure_has_grown) {
  const LeaksByFingerprint old = {{"a", leak(2, 200)}, {"b", leak(2, 200)}};
  const LeaksByFingerprint young = {{"a", leak(9, 100)}, {"b", leak(1, 300)}};
  EXPECT_EQ(difference_of(old, young).grown.size(), 2u);
}

TEST(Differences, do_not_take_suppressed_leaks_for_gone_ones) {
  const Difference difference = difference_of(first_leaks, {}, {"gone", "same"});
  EXPECT_EQ(difference.suppressed, 2u);
  EXPECT_EQ(names(difference.gone), "less;more allocations;more bytes;");
  EXPECT_NE(difference_text("old.json", first_leaks, {}, difference, 10, Style(false))
                .find("old.json: no leaks, before 850 B in 9 allocations\n  leaks: 2 suppressed "
                      "now, 3 gone\n"),
            std::string::npos);
}

TEST(Differences, are_none_between_equal_leaks) {
  EXPECT_EQ(difference_text("old.json", first_leaks, first_leaks,
                            difference_of(first_leaks, first_leaks), 10, Style(false)),
            "COMPARED WITH old.json: 850 B in 9 allocations not freed, before 850 B in 9 "
            "allocations\n"
            "  leaks: 5 unchanged\n");
}

GateOutcome outcome(Gate gate, const LeaksByFingerprint& leaks,
                    std::optional<std::string> doubt = {}) {
  return judge(gate, leaks, difference_of(first_leaks, leaks), doubt);
}

TEST(Gates, fail_on_what_they_are_asked_for_and_name_the_largest) {
  EXPECT_EQ(outcome({.on_new = true}, now).line,
            "FAIL: 6 leaks, 2 grown, 2 new: cache.cpp:41 in Cache::insert");
  EXPECT_EQ(outcome({.on_growth = true}, now).line, "FAIL: 6 leaks, 2 grown: grow.cpp:3 in g");
  EXPECT_EQ(outcome({.on_new = true, .on_growth = true}, now).line,
            "FAIL: 6 leaks, 2 grown, 2 new: cache.cpp:41 in Cache::insert");
  EXPECT_EQ(outcome({.on_leak = FailingLeaks::all}, now).line,
            "FAIL: 6 leaks: cache.cpp:41 in Cache::insert");
  EXPECT_TRUE(outcome({.on_leak = FailingLeaks::all}, now).failed);
}

TEST(Gates, pass_without_such_leaks) {
  EXPECT_EQ(outcome({.on_leak = FailingLeaks::all}, {}).line, "OK: no leaks");
  EXPECT_EQ(outcome({.on_new = true, .on_growth = true}, first_leaks).line,
            "OK: 5 leaks, none grown, none new");
  EXPECT_FALSE(outcome({.on_new = true, .on_growth = true}, first_leaks).failed);
  EXPECT_FALSE(outcome({.on_growth = true}, {{"other", leak(1, 1)}}).failed);
  EXPECT_FALSE(outcome({.on_new = true}, {{"less", leak(9, 900)}}).failed);
}

TEST(Gates, fail_if_leaks_may_be_missing) {
  const GateOutcome doubtful = outcome({.on_new = true}, first_leaks, "ci.json: records were lost");
  EXPECT_TRUE(doubtful.failed);
  EXPECT_EQ(doubtful.line,
            "FAIL: 5 leaks, none new, but leaks may be missing: ci.json: records were lost");
  EXPECT_EQ(outcome({.on_new = true}, now, "ci.json: records were lost").line,
            "FAIL: 6 leaks, 2 grown, 2 new: cache.cpp:41 in Cache::insert");
}

}  // namespace
}  // namespace cuwarden
