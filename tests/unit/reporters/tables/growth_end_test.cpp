// The end of growth: leaks of a process that has run out of memory cannot grow any more.
#include <gtest/gtest.h>

#include "reporters/tables/ledger_report.hpp"
#include "tests/unit/reporters/sample_ledger.hpp"
#include "tests/unit/reporters/units.hpp"

namespace cuwarden {
namespace {

using test::second_ns;

// A program that leaks a block in each of 40 seconds.
class GrowthEnd : public testing::Test {
 protected:
  GrowthEnd() {
    ledger.add_group(ledger.add_stack({0x10}), {0}, Kind::device, {0});
    for (std::uint64_t second = 1; second <= 40; ++second) leak_at(second);
  }
  void leak_at(std::uint64_t second) {
    ledger.add_record({1}, next_address += 0x200000, 1 << 20, second * second_ns);
  }
  void refuse_at(std::uint64_t second, std::uint64_t failed, std::uint64_t recovered) {
    ledger::IncidentView incident;
    incident.id = {static_cast<std::uint32_t>(ledger.incidents.size() + 1)};
    incident.time_ns = incident.last_ns = second * second_ns;
    incident.failed = failed;
    incident.recovered = recovered;
    ledger.incidents.push_back(incident);
  }
  std::optional<std::string> growth() {
    ReportOptions options;
    options.end_ns = end_s * second_ns;
    options.end_reason = ledger::EndReason::exit;
    ledger.process.exit_status = exit_status;
    const ledger::Reader reader = ledger.reader();
    return LedgerReport(reader, options).whole().leak_groups.front().growth;
  }

  test::FakeLedger ledger;
  std::uint64_t next_address = 0x7f0000000000, end_s = 70;
  std::optional<int> exit_status = 0;
};

TEST_F(GrowthEnd, is_that_of_the_process_if_no_request_failed) { EXPECT_EQ(growth(), "burst"); }

TEST_F(GrowthEnd, is_the_failed_request_after_which_nothing_was_leaked) {
  refuse_at(41, 1, 0);
  EXPECT_EQ(growth(), "growing");
  refuse_at(60, 1, 0);
  EXPECT_EQ(growth(), "growing") << "the first of them counts";
}

TEST_F(GrowthEnd, is_that_of_a_process_that_went_on_for_long_unless_it_failed) {
  refuse_at(41, 1, 0);
  end_s = 1000;
  EXPECT_EQ(growth(), "burst");
  exit_status = 1;
  EXPECT_EQ(growth(), "growing");
}

TEST_F(GrowthEnd, is_that_of_the_process_if_the_failed_request_was_served_later) {
  refuse_at(41, 3, 3);
  EXPECT_EQ(growth(), "burst");
}

TEST_F(GrowthEnd, is_that_of_the_process_if_it_could_allocate_after_the_failed_request) {
  refuse_at(41, 1, 0);
  leak_at(55);
  end_s = 200;
  EXPECT_EQ(growth(), "burst");
}

}  // namespace
}  // namespace cuwarden
