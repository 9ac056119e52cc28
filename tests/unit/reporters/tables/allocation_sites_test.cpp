// The call stacks that allocated most bytes over the run, and the bytes of all allocations.
#include "reporters/tables/allocation_sites.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "reporters/tables/ledger_report.hpp"
#include "tests/unit/reporters/fake_ledger.hpp"

namespace cuwarden {
namespace {

// A process whose groups have allocated memory, and freed all of it.
class AllocationSites : public testing::Test {
 protected:
  AllocationSites() { ledger.hooks.push_back({{0}, "cuMemAlloc_v2", 1}); }
  void group(Kind kind, std::uint64_t count, std::uint64_t bytes) {
    const StackId stack = ledger.add_stack({0x10 + ledger.groups.size()});
    ledger::GroupView& row = ledger.groups[ledger.add_group(stack, {0}, kind, {0}).value - 1];
    row.allocations = row.frees = count;
    row.allocated_bytes = bytes;
  }
  void series(Kind kind) {
    ledger::SeriesView& row = ledger.series.emplace_back();
    row.kind = kind;
    row.device = {0};
    row.buckets_used = 1;
    row.buckets[0].width_ns = 1000;
    row.buckets[0].max_bytes = row.buckets[0].last_bytes = 5;
  }
  model::Report report() {
    const ledger::Reader reader = ledger.reader();
    return LedgerReport(reader, {}).whole();
  }

  test::FakeLedger ledger;
};

TEST_F(AllocationSites, have_all_bytes_of_freed_allocations_and_most_bytes_come_first) {
  group(Kind::device, 10, 1000);
  group(Kind::pinned, 2, 5000);
  const model::Report made = report();
  ASSERT_EQ(made.allocation_sites.size(), 2u);
  const model::AllocationSite& first = made.allocation_sites.front();
  EXPECT_EQ(first.kind, "pinned");
  EXPECT_EQ(first.api, "cuMemAlloc_v2");
  EXPECT_EQ(first.allocations, 2u);
  EXPECT_EQ(first.allocated_bytes, 5000u);
  ASSERT_TRUE(first.stack);
  bool has_stack = false;
  for (const model::Stack& stack : made.stacks) has_stack = has_stack || stack.id == *first.stack;
  EXPECT_TRUE(has_stack);
}

TEST_F(AllocationSites, with_most_bytes_are_listed_if_there_are_many_and_the_totals_have_all) {
  series(Kind::device);
  std::uint64_t sum = 0;
  // The sizes come in no order.
  for (std::uint64_t i = 0; i < 3 * most_allocation_sites; ++i) {
    const std::uint64_t bytes = 1 + i * 7919 % (3 * most_allocation_sites);
    sum += bytes;
    group(Kind::device, 1, bytes);
  }
  const model::Report made = report();
  ASSERT_EQ(made.allocation_sites.size(), most_allocation_sites);
  for (std::size_t i = 0; i < most_allocation_sites; ++i)
    EXPECT_EQ(made.allocation_sites[i].allocated_bytes, 3 * most_allocation_sites - i);
  ASSERT_EQ(made.totals.size(), 1u);
  EXPECT_EQ(made.totals[0].allocated_bytes, sum);
}

TEST_F(AllocationSites, leave_out_memory_that_the_program_did_not_ask_for) {
  group(Kind::stream, 1, 1000);
  group(Kind::framework_block, 1, 1000);
  EXPECT_TRUE(report().allocation_sites.empty());
}

TEST_F(AllocationSites, the_timeline_has_blocks_of_frameworks_but_no_implicit_memory) {
  for (const Kind kind : {Kind::device, Kind::framework_block, Kind::module}) series(kind);
  const model::Report made = report();
  ASSERT_EQ(made.timeline.size(), 2u);
  EXPECT_EQ(made.timeline[0].kind, "device");
  EXPECT_EQ(made.timeline[1].kind, "framework_block");
  EXPECT_EQ(made.timeline[1].max_bytes, 5u);
}

}  // namespace
}  // namespace cuwarden
