// Leaks that are judged by the steps that the program marked.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "reporters/tables/groups/leak_groups.hpp"
#include "reporters/tables/groups/step_marks.hpp"
#include "reporters/tables/ledger_report.hpp"
#include "reporters/text/text_report.hpp"
#include "tests/unit/reporters/sample_ledger.hpp"
#include "tests/unit/reporters/units.hpp"

namespace cuwarden {
namespace {

using test::second_ns;

constexpr std::uint64_t step_bytes = std::uint64_t{1} << 20;

// A program with a step each second, and one group of allocations.
class Steps : public testing::Test {
 protected:
  // Marks steps 1 to `count`; step N begins after N seconds.
  void mark(std::uint64_t count) {
    for (std::uint64_t number = 1; number <= count; ++number)
      ledger.steps.push_back({number, number * second_ns, {}, 0});
    ledger.process.steps = count;
  }
  // Adds an allocation that is not freed, a half of a second_ns after the start of the step.
  void leak_in(std::uint64_t step, std::uint64_t bytes) {
    if (ledger.groups.empty()) ledger.add_group(ledger.add_stack({0x10}), {0}, Kind::device, {0});
    ledger.add_record({1}, next_address += 0x200000, bytes, step * second_ns + second_ns / 2);
  }
  model::Report report() {
    ReportOptions options;
    options.end_ns = end_ns;
    const ledger::Reader reader = ledger.reader();
    return LedgerReport(reader, options).whole();
  }

  test::FakeLedger ledger;
  std::uint64_t next_address = 0x7f0000000000, end_ns = 41 * second_ns;
};

TEST_F(Steps, a_leak_in_each_step_has_its_bytes_per_step_and_its_first_step) {
  mark(40);
  for (std::uint64_t step = 3; step <= 40; ++step) leak_in(step, 12 * step_bytes);
  const model::Report made = report();
  EXPECT_EQ(made.process.steps, 40u);
  ASSERT_EQ(made.leak_groups.size(), 1u);
  const model::LeakGroup& leak = made.leak_groups.front();
  EXPECT_EQ(leak.growth, "growing");
  EXPECT_EQ(leak.first_step, 3u);
  EXPECT_EQ(leak.growth_bytes_per_step, 12 * step_bytes);
  const std::string text = text_report(IndexedReport(made), {});
  EXPECT_NE(text.find("growing by 12.0 MiB a step since step 3"), text.npos) << text;
}

TEST_F(Steps, allocations_before_the_steps_and_in_the_first_of_them_do_not_grow) {
  mark(40);
  for (int block = 0; block < 6; ++block) leak_in(0, step_bytes);
  for (int block = 0; block < 6; ++block) leak_in(1, step_bytes);
  const model::LeakGroup leak = report().leak_groups.front();
  EXPECT_EQ(leak.growth, "one_time");
  EXPECT_EQ(leak.first_step, 0u);
  EXPECT_FALSE(leak.growth_bytes_per_step);
}

// A long start before the steps would make what grows in each step look like a burst at the end.
TEST_F(Steps, count_for_growth_in_place_of_times) {
  end_ns = 10'000 * second_ns;
  for (std::uint64_t number = 1; number <= 20; ++number)
    ledger.steps.push_back({number, (9'000 + 10 * number) * second_ns, {}, 0});
  ledger.process.steps = 20;
  leak_in(100, step_bytes);
  for (std::uint64_t number = 1; number <= 20; ++number) leak_in(9'000 + 10 * number, step_bytes);
  const model::LeakGroup leak = report().leak_groups.front();
  EXPECT_EQ(leak.growth, "growing");
  EXPECT_EQ(leak.growth_bytes_per_step, step_bytes);
  EXPECT_FALSE(leak.growth_bytes_per_minute);
}

TEST_F(Steps, ended_before_the_growth_did_leave_the_judgement_to_times) {
  mark(8);
  for (std::uint64_t second_after = 0; second_after <= 40; ++second_after)
    leak_in(second_after, step_bytes);
  const model::LeakGroup leak = report().leak_groups.front();
  EXPECT_EQ(leak.growth, "growing");
  EXPECT_TRUE(leak.growth_bytes_per_minute);
  EXPECT_FALSE(leak.growth_bytes_per_step);
}

TEST_F(Steps, show_growth_that_a_late_allocation_does_not_hide) {
  mark(40);
  end_ns = 10'000 * second_ns;
  for (std::uint64_t step = 1; step <= 40; ++step) leak_in(step, step_bytes);
  leak_in(9'000, step_bytes);
  const model::LeakGroup leak = report().leak_groups.front();
  EXPECT_EQ(leak.growth, "growing");
  EXPECT_EQ(leak.first_step, 1u);
}

TEST_F(Steps, fewer_than_four_leave_the_judgement_to_times) {
  mark(3);
  for (std::uint64_t step = 0; step <= 40; ++step) leak_in(step, step_bytes);
  const model::LeakGroup leak = report().leak_groups.front();
  EXPECT_EQ(leak.growth, "growing");
  EXPECT_TRUE(leak.growth_bytes_per_minute);
  EXPECT_FALSE(leak.first_step);
  EXPECT_FALSE(leak.growth_bytes_per_step);
}

TEST_F(Steps, are_unknown_if_the_program_marked_none) {
  for (std::uint64_t step = 0; step <= 40; ++step) leak_in(step, step_bytes);
  const model::Report made = report();
  EXPECT_FALSE(made.process.steps);
  EXPECT_EQ(made.leak_groups.front().growth, "growing");
  EXPECT_FALSE(made.leak_groups.front().first_step);
}

TEST_F(Steps, are_left_out_if_they_contradict_others_in_a_damaged_ledger) {
  ledger.steps = {{1, 10, {}, 0}, {2, 5, {}, 0},           {2, 20, {}, 0},
                  {2, 30, {}, 0}, {UINT64_MAX, 40, {}, 0}, {3, 50, {}, 0}};
  ledger.process.steps = UINT64_MAX;
  const ledger::Reader reader = ledger.reader();
  const StepMarks marks(reader);
  EXPECT_EQ(marks.at(9), 0u);
  EXPECT_EQ(marks.at(10), 1u);
  EXPECT_EQ(marks.at(25), 2u);
  EXPECT_EQ(marks.at(45), 2u) << "no program has so many steps";
  EXPECT_EQ(marks.at(50), 3u);
  EXPECT_EQ(marks.count(), 3u);
}

TEST_F(Steps, are_listed_with_their_times_and_names) {
  ledger.steps = {{1, second_ns, "test_small", 2 * second_ns}, {2, 3 * second_ns, {}, 0}};
  ledger.process.steps = 2;
  const model::Report made = report();
  ASSERT_EQ(made.steps.size(), 2u);
  EXPECT_EQ(made.steps[0].number, 1u);
  EXPECT_EQ(made.steps[0].time_ns, second_ns);
  EXPECT_EQ(made.steps[0].name, "test_small");
  EXPECT_EQ(made.steps[0].name_end_ns, 2 * second_ns);
  EXPECT_EQ(made.steps[1].number, 2u);
  EXPECT_FALSE(made.steps[1].name);
  EXPECT_FALSE(made.steps[1].name_end_ns);
}

TEST_F(Steps, with_a_name_are_listed_for_each_leak_with_their_part_of_it) {
  ledger.steps = {{1, second_ns, "test_small", 2 * second_ns},
                  {2, 3 * second_ns, "test_large", 0},
                  {3, 3 * second_ns + 1, {}, 0},
                  {4, 4 * second_ns, "test_small", 5 * second_ns},
                  {5, 5 * second_ns, "test_clean", 0}};
  ledger.process.steps = 5;
  leak_in(0, step_bytes);
  leak_in(1, step_bytes);
  leak_in(2, step_bytes);
  leak_in(3, 8 * step_bytes);
  leak_in(4, step_bytes);
  leak_in(4, step_bytes);
  const model::Report made = report();
  const auto& steps = made.leak_groups.front().named_steps;
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].name, "test_large");
  EXPECT_EQ(steps[0].count, 1u);
  EXPECT_EQ(steps[0].bytes, 8 * step_bytes);
  EXPECT_EQ(steps[1].name, "test_small");
  EXPECT_EQ(steps[1].count, 3u);
  EXPECT_EQ(steps[1].bytes, 3 * step_bytes);
  const std::string text = text_report(IndexedReport(made), {});
  EXPECT_NE(text.find("made in test_large (8.0 MiB in 1 allocation), test_small (3.0 MiB in 3 "
                      "allocations); 2 allocations outside of named steps\n"),
            text.npos)
      << text;
}

}  // namespace
}  // namespace cuwarden
