// Frameworks in reports: their own figures, the holes in their segments, and their blocks.
#include "reporters/tables/groups/frameworks.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "reporters/tables/ledger_report.hpp"
#include "tests/unit/reporters/sample_ledger.hpp"

namespace cuwarden {
namespace {

constexpr std::uint64_t a_mib = std::uint64_t{1} << 20, segment_start = 0x7f0000000000;
constexpr DeviceOrdinal first_device{0}, second_device{1};

// A process whose memory PyTorch's allocator has taken, but for that of group 3.
class Frameworks : public testing::Test {
 protected:
  Frameworks() {
    ledger.add_module("/lib/libc10_cuda.so", 0x1000, 0x1000);
    ledger.add_module("/lib/libother.so", 0x3000, 0x1000);
    segments = ledger.add_group(ledger.add_stack({0x1010}), {0}, Kind::device, first_device);
    blocks = ledger.add_group(ledger.add_stack({0x1020}), {0}, Kind::framework_block, first_device);
    others = ledger.add_group(ledger.add_stack({0x3010}), {0}, Kind::device, first_device);
    ledger.hooks.push_back({{0}, "cuMemAlloc_v2", 1});
  }
  void segment(std::uint64_t at, std::uint64_t bytes) { add(segments, at, bytes, Space::pointer); }
  void block(std::uint64_t at, std::uint64_t bytes) {
    add(blocks, at, bytes, Space::framework_block);
  }
  void add(GroupId group, std::uint64_t at, std::uint64_t bytes, Space space) {
    ledger.add_record(group, segment_start + at, bytes, 1000);
    ledger.records.back().space = space;
  }
  std::optional<FreeBlocks> free_blocks(DeviceOrdinal device = first_device) {
    return free_blocks_of_pytorch(ledger.reader(), device);
  }
  model::Report report() {
    const ledger::Reader reader = ledger.reader();
    return LedgerReport(reader, {}).whole();
  }

  test::FakeLedger ledger;
  GroupId segments, blocks, others;
};

TEST_F(Frameworks, holes_are_what_blocks_leave_free_of_segments_in_use) {
  segment(0, 20 * a_mib);
  segment(100 * a_mib, 20 * a_mib);  // in no use: a free block, and no hole
  segment(200 * a_mib, 10 * a_mib);  // in use as a whole
  block(2 * a_mib, a_mib);
  block(3 * a_mib, 4 * a_mib);
  block(19 * a_mib, a_mib);
  block(200 * a_mib, 10 * a_mib);
  const auto found = free_blocks();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->hole_count, 2u);
  EXPECT_EQ(found->hole_bytes, 14 * a_mib);
  EXPECT_EQ(found->largest_bytes, 20 * a_mib);
}

TEST_F(Frameworks, segments_that_touch_each_other_are_two) {
  segment(0, 4 * a_mib);
  segment(4 * a_mib, 4 * a_mib);
  block(0, a_mib);
  block(7 * a_mib, a_mib);
  const auto found = free_blocks();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->hole_count, 2u);
  EXPECT_EQ(found->largest_bytes, 3 * a_mib);
}

TEST_F(Frameworks, mapped_ranges_that_touch_each_other_are_one_segment) {
  add(segments, 0xabc, 2 * a_mib, Space::vmm_handle);
  for (const std::uint64_t at : {2 * a_mib, std::uint64_t{0}}) {
    add(others, at, 2 * a_mib, Space::vmm_mapping);
    ledger.records.back().related = 1;
  }
  block(a_mib, 512);
  const auto found = free_blocks();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->hole_count, 2u);
  EXPECT_EQ(found->largest_bytes, 3 * a_mib - 512);
}

TEST_F(Frameworks, memory_of_other_libraries_and_devices_has_no_holes) {
  segment(0, 4 * a_mib);
  block(0, a_mib);
  add(others, 50 * a_mib, 2 * a_mib, Space::pointer);
  EXPECT_EQ(free_blocks()->hole_bytes, 3 * a_mib);
  EXPECT_EQ(free_blocks()->largest_bytes, 3 * a_mib);
  EXPECT_FALSE(free_blocks(second_device));
}

TEST_F(Frameworks, free_memory_is_unknown_without_blocks) {
  segment(0, 4 * a_mib);
  EXPECT_FALSE(free_blocks());
}

TEST_F(Frameworks, damaged_records_of_blocks_do_no_harm) {
  segment(0, 4 * a_mib);
  block(a_mib, a_mib);
  block(a_mib, 2 * a_mib);                            // overlaps
  block(UINT64_MAX - segment_start - 10, 2 * a_mib);  // ends beyond the last address
  block(9 * a_mib, a_mib);                            // in no segment
  const auto found = free_blocks();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->hole_bytes, 2 * a_mib);
}

TEST_F(Frameworks, a_framework_without_figures_has_the_memory_that_it_asked_for) {
  segment(0, 4 * a_mib);
  segment(9 * a_mib, 2 * a_mib);
  add(others, 50 * a_mib, 2 * a_mib, Space::pointer);
  const model::Report made = report();
  ASSERT_EQ(made.frameworks.size(), 1u);
  EXPECT_EQ(made.frameworks[0].framework, "PyTorch");
  EXPECT_EQ(made.frameworks[0].source, "call_stacks");
  EXPECT_EQ(made.frameworks[0].reserved_bytes, 6 * a_mib);
  EXPECT_EQ(made.frameworks[0].allocated_bytes, std::nullopt);
}

TEST_F(Frameworks, figures_of_a_framework_stand_for_the_memory_that_it_asked_for) {
  segment(0, 4 * a_mib);
  ledger::FrameworkPoolView told;
  told.framework = "PyTorch";
  told.device = first_device;
  told.time_ns = 7;
  told.reserved_bytes = 4 * a_mib;
  told.allocated_bytes = a_mib;
  told.peak_allocated_bytes = 2 * a_mib;
  told.hole_count = told.hole_bytes = told.largest_free_bytes = ledger::unknown_value;
  ledger.framework_pools.push_back(told);
  block(0, a_mib);
  const model::Report made = report();
  ASSERT_EQ(made.frameworks.size(), 1u);
  EXPECT_EQ(made.frameworks[0].source, "framework");
  EXPECT_EQ(made.frameworks[0].allocated_bytes, a_mib);
  EXPECT_EQ(made.frameworks[0].hole_bytes, 3 * a_mib);
  ASSERT_EQ(made.framework_sites.size(), 1u);
  EXPECT_EQ(made.framework_sites[0].bytes, a_mib);
  ASSERT_EQ(made.leak_groups.size(), 1u) << "blocks are no leaks beside their segments";
  EXPECT_EQ(made.leaks.bytes, 4 * a_mib);
}

}  // namespace
}  // namespace cuwarden
