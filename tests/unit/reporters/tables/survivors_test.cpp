// Allocations that are merely in use at the end count neither as leaked nor for a burst.
#include <gtest/gtest.h>

#include <string>

#include "reporters/tables/ledger_report.hpp"
#include "reporters/text/text_report.hpp"
#include "tests/unit/reporters/sample_ledger.hpp"
#include "tests/unit/reporters/text/has.hpp"
#include "tests/unit/reporters/units.hpp"

namespace cuwarden {
namespace {

using test::has;
using test::second_ns;

// A program of 100 s with one group of allocations, of which the freed ones lived for up to 4 s.
class Survivors : public testing::Test {
 protected:
  Survivors() {
    ledger.add_group(ledger.add_stack({0x10}), {0}, Kind::device, {0});
    ledger.groups.back().longest_life.freed(50 * second_ns, 4 * second_ns);
  }
  // Adds a live allocation that was made at this time.
  void leave_at(std::uint64_t time_ns) {
    ledger.add_record({1}, next_address += 0x200000, 1 << 20, time_ns);
  }
  // Sets the number of allocations that the group ever made.
  void set_made(std::uint64_t made) {
    ledger.groups.back().allocations = made;
    ledger.groups.back().frees = made - ledger.groups.back().live_count;
  }
  model::Report report() {
    ReportOptions options;
    options.end_ns = 100 * second_ns;
    const ledger::Reader reader = ledger.reader();
    return LedgerReport(reader, options).whole();
  }

  test::FakeLedger ledger;
  std::uint64_t next_address = 0x7f0000000000;
};

// The program makes 20 blocks a second, uses 40 at any time, and loses one each 5 s.
TEST_F(Survivors, blocks_in_use_at_the_end_are_not_called_never_freed) {
  for (std::uint64_t second = 5; second <= 90; second += 5) leave_at(second * second_ns);
  for (std::uint64_t in_use = 0; in_use < 40; ++in_use)
    leave_at(98 * second_ns + in_use * second_ns / 20);
  set_made(1840);
  const model::Report made = report();
  const model::LeakGroup& leak = made.leak_groups.front();
  EXPECT_EQ(leak.growth, "growing");
  EXPECT_EQ(leak.count, 58u);
  EXPECT_EQ(leak.survivors, 18u);
  EXPECT_EQ(leak.last_survivor_ns, 90 * second_ns);
  const std::string text = text_report(IndexedReport(made), {});
  EXPECT_TRUE(has(text, "1 in 100 is never freed")) << text;
}

TEST_F(Survivors, a_block_in_use_at_the_end_is_no_part_of_a_burst) {
  for (std::uint64_t block = 0; block < 25; ++block) leave_at(second_ns + block * 100'000);
  leave_at(99 * second_ns);
  set_made(200);
  const model::Report made = report();
  EXPECT_EQ(made.leak_groups.front().growth, "burst");
  const std::string text = text_report(IndexedReport(made), {});
  EXPECT_TRUE(has(text, "26 allocations")) << text;
  EXPECT_TRUE(has(text, "burst: 25 in 2.4 ms, then few more")) << text;
}

// The exit took so long that the block was just old enough.
TEST_F(Survivors, a_lone_late_survivor_is_no_part_of_a_burst) {
  for (std::uint64_t block = 0; block < 25; ++block) leave_at(second_ns + block * 100'000);
  leave_at(93 * second_ns);
  const model::Report made = report();
  EXPECT_EQ(made.leak_groups.front().survivors, 25u);
  const std::string text = text_report(IndexedReport(made), {});
  EXPECT_TRUE(has(text, "burst: 25 in 2.4 ms, then few more")) << text;
}

TEST_F(Survivors, lacking_in_an_old_report_all_live_allocations_count) {
  for (std::uint64_t second = 5; second <= 90; second += 5) leave_at(second * second_ns);
  set_made(180);
  model::Report old = report();
  old.leak_groups.front().survivors.reset();
  old.leak_groups.front().last_survivor_ns.reset();
  const std::string text = text_report(IndexedReport(old), {});
  EXPECT_TRUE(has(text, "1 in 10 is never freed")) << text;
}

}  // namespace
}  // namespace cuwarden
