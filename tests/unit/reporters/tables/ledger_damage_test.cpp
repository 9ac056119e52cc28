// Damage in a ledger, such as ids without a row, is found. A ledger that lacks rows and says so
// itself is not called damaged.
#include "reporters/tables/ledger_damage.hpp"

#include <gtest/gtest.h>

#include "tests/unit/reporters/sample_ledger.hpp"

namespace cuwarden {
namespace {

class DamagedLedger : public testing::Test {
 protected:
  DamagedLedger() { test::fill_sample(ledger); }
  LedgerDamage damage(bool at_rest = true) const { return find_damage(ledger.reader(), at_rest); }
  test::FakeLedger ledger;
};

TEST_F(DamagedLedger, a_whole_ledger_is_not_called_damaged) {
  EXPECT_FALSE(damage().any()) << damage().sentence();
}

TEST_F(DamagedLedger, a_live_allocation_without_its_group_is_lost) {
  ledger.records[0].group = {99};
  EXPECT_EQ(damage().lost_allocations, 1u);
  EXPECT_NE(damage().sentence().find("1 live allocation has no call stack"), std::string::npos);
}

TEST_F(DamagedLedger, tables_in_the_processs_memory_only_are_no_damage) {
  ledger.records[0].group = {99};
  ledger.groups[1].stack = {99};
  ledger.process.reasons = ledger::reason_ledger_partly_in_memory;
  EXPECT_FALSE(damage().any()) << damage().sentence();
}

TEST_F(DamagedLedger, names_that_had_no_room_are_no_damage) {
  ledger.settings[0].name = "";
  EXPECT_EQ(damage().lost_names, 1u);
  ledger.process.reasons = ledger::reason_names_missing;
  EXPECT_FALSE(damage().any()) << damage().sentence();
}

TEST_F(DamagedLedger, vanished_records_are_noticed_once_no_process_writes_any_more) {
  ledger.records.erase(ledger.records.begin(), ledger.records.begin() + 2);
  EXPECT_EQ(damage().counted - damage().listed, 2u);
  EXPECT_FALSE(damage(false).any()) << "a process that goes on changes the one after the other";
}

TEST_F(DamagedLedger, a_mapping_has_no_part_in_the_sums) {
  ASSERT_EQ(ledger.records.back().flags, ledger::record_counts_no_bytes);
  ledger.records.back().bytes = {UINT64_MAX};
  ledger.records.back().group = {99};
  EXPECT_FALSE(damage().any()) << damage().sentence();
}

TEST_F(DamagedLedger, numbers_that_no_process_reaches_count_as_damage) {
  ledger.records[1].bytes = {std::uint64_t{1} << 60};
  ledger.series[0].peak_bytes = UINT64_MAX;
  EXPECT_EQ(damage().absurd_figures, 2u);
}

}  // namespace
}  // namespace cuwarden
