// Steps of the program in the ledger: few rows for any number of steps.
#include "runtime_hooks/ledger/write/steps.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

TEST_F(LedgerTest, the_first_steps_each_have_a_row) {
  for (std::uint64_t step = 0; step < exact_steps; ++step) writer->steps.begin();
  const Reader reader = read(*writer);
  EXPECT_EQ(reader.process().steps, exact_steps);
  ASSERT_EQ(reader.rows(RegionId::steps), exact_steps + 1);
  std::uint64_t before_ns = 0;
  for (std::uint64_t row = 1; row <= exact_steps; ++row) {
    const auto mark = reader.step_mark(row);
    ASSERT_TRUE(mark);
    EXPECT_EQ(mark->number, row);
    EXPECT_GE(mark->time_ns, before_ns);
    before_ns = mark->time_ns;
  }
}

TEST_F(LedgerTest, many_steps_need_few_rows_and_their_numbers_err_by_at_most_1_in_256) {
  constexpr std::uint64_t steps = 2'000'000;
  for (std::uint64_t step = 0; step < steps; ++step) writer->steps.begin();
  const Reader reader = read(*writer);
  EXPECT_EQ(reader.process().steps, steps);
  const std::uint64_t rows = reader.rows(RegionId::steps);
  EXPECT_LT(rows, 3000u);
  std::uint64_t before = 0;
  for (std::uint64_t row = 1; row < rows; ++row) {
    const std::uint64_t number = reader.step_mark(row)->number;
    ASSERT_GT(number, before);
    ASSERT_LE(number - before, 1 + before / exact_steps) << "between steps with rows";
    before = number;
  }
  EXPECT_LE(steps - before, before / exact_steps);
  EXPECT_EQ(reader.process().reasons & reason_ledger_full, 0u);
}

TEST_F(LedgerTest, steps_from_before_the_ledger_are_counted_once_and_the_last_has_a_row) {
  const std::uint64_t now_ns = writer->file.header().process.start_monotonic_ns + 70;
  writer->steps.add({5, now_ns, "warm-up"});
  writer->steps.begin();
  writer->steps.begin();
  const Reader reader = read(*writer);
  EXPECT_EQ(reader.process().steps, 7u);
  EXPECT_EQ(reader.step_mark(1)->number, 5u);
  EXPECT_EQ(reader.step_mark(1)->time_ns, 70u);
  EXPECT_EQ(reader.step_mark(1)->name, "warm-up");
  EXPECT_EQ(reader.step_mark(2)->number, 6u);
  EXPECT_EQ(reader.step_mark(3)->number, 7u);
  // A slower thread brings earlier steps, too.
  writer->steps.add({2, now_ns, "late"});
  writer->steps.begin();
  EXPECT_EQ(read(*writer).process().steps, 10u);
  EXPECT_EQ(read(*writer).step_mark(4)->number, 10u);
}

TEST_F(LedgerTest, steps_of_several_threads_are_each_counted_once) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int step = 0; step < 10'000; ++step) writer->steps.begin();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read(*writer).process().steps, 40'000u);
}

TEST_F(LedgerTest, each_step_with_a_name_has_a_row_with_the_end_of_its_name) {
  for (std::uint64_t step = 0; step < 1'000'000; ++step) writer->steps.begin();
  const std::uint64_t before = read(*writer).rows(RegionId::steps);
  writer->steps.begin("test one");
  writer->steps.begin();
  writer->steps.end_name();
  writer->steps.end_name();
  writer->steps.begin("test two");
  writer->steps.begin(std::string(254, 'x') + "\u00e9");
  const Reader reader = read(*writer);
  EXPECT_EQ(reader.process().steps, 1'000'004u) << "the end of a name is no step";
  ASSERT_EQ(reader.rows(RegionId::steps), before + 3);
  const auto one = reader.step_mark(before), two = reader.step_mark(before + 1),
             cut = reader.step_mark(before + 2);
  ASSERT_TRUE(one && two && cut);
  EXPECT_EQ(one->number, 1'000'001u);
  EXPECT_EQ(one->name, "test one");
  EXPECT_GT(one->name_end_ns, one->time_ns);
  EXPECT_LE(one->name_end_ns, two->time_ns);
  EXPECT_EQ(two->number, 1'000'003u);
  EXPECT_EQ(two->name_end_ns, cut->time_ns) << "the next name ends it";
  EXPECT_EQ(cut->name, std::string(254, 'x')) << "no part of a character is kept";
  EXPECT_EQ(cut->name_end_ns, 0u);
}

TEST_F(LedgerTest, a_mark_divides_what_happens_before_it_from_what_happens_after_it) {
  ProcessTime time;
  time.set_start(now_ns() - 1'000'000'000);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t before = time.recently_ns(), boundary = time.boundary();
    ASSERT_LE(before, boundary);
    ASSERT_GE(time.recently_ns(), boundary);
    ASSERT_LT(before, time.boundary()) << "also within a tick of the clock";
  }
}

TEST_F(LedgerTest, names_that_have_no_room_are_said_to_be_missing_and_end_the_last_one) {
  constexpr std::uint64_t most = 200'000;
  for (std::uint64_t step = 0; step < most; ++step) writer->steps.begin("test");
  const Reader reader = read(*writer);
  const std::uint64_t rows = reader.rows(RegionId::steps);
  ASSERT_LT(rows, most);
  std::uint64_t last_named = 0;
  for (std::uint64_t row = 1; row < rows; ++row)
    if (!reader.step_mark(row)->name.empty()) last_named = row;
  EXPECT_GT(last_named, 90'000u);
  EXPECT_GT(reader.step_mark(last_named)->name_end_ns, 0u);
  EXPECT_EQ(reader.process().steps, most);
  EXPECT_EQ(reader.process().reasons, reason_names_missing);
}

}  // namespace
}  // namespace cuwarden::ledger
