// Virtual memory: a handle's memory is live as long as the handle has a reference or a mapping.
#include "runtime_hooks/ledger/write/allocation_records/virtual_memory.hpp"

#include <gtest/gtest.h>

#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

constexpr std::uint64_t MiB = 1 << 20;
constexpr DeviceAddress handle{0x77};
constexpr DeviceAddress base{0x7f0000000000};

class VirtualMemoryTest : public LedgerTest {
 protected:
  void create(DeviceAddress value, std::uint64_t bytes = 2 * MiB) {
    NewRecord record;
    record.space = Space::vmm_handle;
    record.address = value;
    record.bytes = ByteCount{bytes};
    record.group = group_id;
    writer->virtual_memory.created(record);
  }
  void map(DeviceAddress address, DeviceAddress value, std::uint64_t bytes = 2 * MiB) {
    writer->virtual_memory.mapped(address, ByteCount{bytes}, value, group_id);
  }
  void unmap(DeviceAddress address, std::uint64_t bytes = 2 * MiB) {
    writer->virtual_memory.unmap_begin(address, ByteCount{bytes});
  }
  std::vector<RecordView> in(Space space) const {
    std::vector<RecordView> found;
    for (const RecordView& record : records(reader())) {
      if (record.space == space) found.push_back(record);
    }
    return found;
  }
  static DeviceAddress at(std::uint64_t piece) { return {base.value + piece * 2 * MiB}; }

  GroupId group_id = device_group(2, Kind::vmm);
};

TEST_F(VirtualMemoryTest, a_released_handle_lives_while_it_is_mapped) {
  create(handle);
  map(base, handle);
  EXPECT_TRUE(writer->virtual_memory.release_begin(handle));
  expect_live(reader(), {1, 2 * MiB});
  EXPECT_EQ(in(Space::vmm_handle).at(0).references, 0u);
  EXPECT_EQ(in(Space::vmm_handle).at(0).mappings, 1u);
  unmap(base);
  expect_live(reader(), {0, 0});
  EXPECT_TRUE(in(Space::vmm_mapping).empty());
}

TEST_F(VirtualMemoryTest, a_handle_of_unknown_size_has_that_of_its_first_mapping) {
  create(handle, 0);
  expect_live(reader(), {1, 0});
  map(base, handle, 4 * MiB);
  expect_live(reader(), {1, 4 * MiB});
  unmap(base, 4 * MiB);
  EXPECT_TRUE(writer->virtual_memory.release_begin(handle));
  expect_live(reader(), {0, 0});
}

TEST_F(VirtualMemoryTest, an_unmapped_handle_lives_while_it_is_referenced) {
  create(handle);
  map(base, handle);
  unmap(base);
  expect_live(reader(), {1, 2 * MiB});
  EXPECT_EQ(in(Space::vmm_handle).at(0).mappings, 0u);
  writer->virtual_memory.retained_from_mapping(base, handle);
  writer->virtual_memory.release_begin(handle);
  expect_live(reader(), {1, 2 * MiB});
  writer->virtual_memory.release_begin(handle);
  expect_live(reader(), {0, 0});
  EXPECT_FALSE(writer->virtual_memory.release_begin(handle));
  EXPECT_EQ(group(group_id).frees, 1u);
}

TEST_F(VirtualMemoryTest, a_refused_release_changes_nothing) {
  create(handle);
  const RecordView before = in(Space::vmm_handle).at(0);
  writer->virtual_memory.release_begin(handle);
  writer->virtual_memory.release_undo(handle);
  expect_live(reader(), {1, 2 * MiB});
  EXPECT_EQ(in(Space::vmm_handle).at(0).id, before.id);
  EXPECT_EQ(in(Space::vmm_handle).at(0).references, 1u);

  map(base, handle);
  writer->virtual_memory.release_begin(handle);
  writer->virtual_memory.release_undo(handle);
  EXPECT_EQ(in(Space::vmm_handle).at(0).references, 1u);
  unmap(base);
  expect_live(reader(), {1, 2 * MiB});

  writer->virtual_memory.retained_from_mapping(base, handle);
  writer->virtual_memory.release_begin(handle);
  writer->virtual_memory.release_undo(handle);
  EXPECT_EQ(in(Space::vmm_handle).at(0).references, 2u);
  EXPECT_EQ(group(group_id).frees, 0u);
}

TEST_F(VirtualMemoryTest, a_release_refused_after_the_last_unmapping_revives_the_handle) {
  create(handle);
  map(base, handle);
  writer->virtual_memory.release_begin(handle);
  unmap(base);
  expect_live(reader(), {0, 0});
  writer->virtual_memory.release_undo(handle);
  expect_live(reader(), {1, 2 * MiB});
  writer->virtual_memory.release_begin(handle);
  expect_live(reader(), {0, 0});
}

TEST_F(VirtualMemoryTest, a_refused_unmapping_restores_exactly_its_mappings) {
  for (std::uint64_t i = 0; i < 4; ++i) {
    create({100 + i});
    map(at(i), {100 + i});
    writer->virtual_memory.release_begin({100 + i});
  }
  unmap(at(3));  // this mapping is not restored
  const auto before = in(Space::vmm_mapping);
  ASSERT_EQ(before.size(), 3u);
  unmap(at(0), 8 * MiB);
  expect_live(reader(), {0, 0});
  writer->virtual_memory.unmap_undo(at(0), ByteCount{8 * MiB});
  expect_live(reader(), {3, 6 * MiB});
  const auto after = in(Space::vmm_mapping);
  ASSERT_EQ(after.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(after[i].id, before[i].id);
    EXPECT_EQ(after[i].address, before[i].address);
    EXPECT_EQ(after[i].related, before[i].related);
  }
  unmap(at(0), 8 * MiB);
  expect_live(reader(), {0, 0});
}

TEST_F(VirtualMemoryTest, one_unmapping_may_cover_mappings_of_several_sizes) {
  std::uint64_t address = base.value;
  for (const std::uint64_t size : {2 * MiB, 64 * MiB, 2 * MiB, 512 * MiB}) {
    create({address}, size);
    map({address}, {address}, size);
    writer->virtual_memory.release_begin({address});
    address += size;
  }
  create(handle);
  map({address}, handle);  // lies just behind the range
  unmap(base, address - base.value);
  expect_live(reader(), {1, 2 * MiB});
  ASSERT_EQ(in(Space::vmm_mapping).size(), 1u);
  EXPECT_EQ(in(Space::vmm_mapping)[0].address.value, address);
}

TEST_F(VirtualMemoryTest, a_huge_range_with_little_in_it_is_unmapped_quickly) {
  create(handle);
  map({base.value + (std::uint64_t{1} << 45)}, handle);
  unmap(base, std::uint64_t{1} << 46);
  EXPECT_TRUE(in(Space::vmm_mapping).empty());
  expect_live(reader(), {1, 2 * MiB});
}

TEST_F(VirtualMemoryTest, a_handle_mapped_twice_counts_once) {
  create(handle);
  map(at(0), handle);
  map(at(5), handle);
  EXPECT_EQ(in(Space::vmm_handle).at(0).mappings, 2u);
  expect_live(reader(), {1, 2 * MiB});
  writer->virtual_memory.release_begin(handle);
  unmap(at(0));
  expect_live(reader(), {1, 2 * MiB});
  unmap(at(5));
  expect_live(reader(), {0, 0});
}

TEST_F(VirtualMemoryTest, a_released_value_may_come_back_as_another_handle) {
  create(handle);
  map(base, handle);
  writer->virtual_memory.release_begin(handle);
  create(handle, 4 * MiB);  // the driver reuses the value while the old memory is still mapped
  expect_live(reader(), {2, 6 * MiB});
  EXPECT_EQ(reader().process().superseded, 0u);
  unmap(base);
  expect_live(reader(), {1, 4 * MiB});
}

TEST_F(VirtualMemoryTest, a_handle_made_from_an_address_keeps_its_memory) {
  create(handle, 64 * MiB);
  create({0x99});
  map({base.value + 64 * MiB}, {0x99});  // makes the step between mappings small
  map(base, handle, 64 * MiB);
  writer->virtual_memory.release_begin(handle);
  writer->virtual_memory.retained_from_mapping({base.value + 33 * MiB}, {0x1234});
  unmap(base, 64 * MiB);
  expect_live(reader(), {2, 66 * MiB});
  EXPECT_TRUE(writer->virtual_memory.release_begin({0x1234}));
  expect_live(reader(), {1, 2 * MiB});
}

TEST_F(VirtualMemoryTest, the_same_value_from_an_address_is_one_more_reference) {
  create(handle);
  map(base, handle);
  writer->virtual_memory.retained_from_mapping(base, handle);
  EXPECT_EQ(in(Space::vmm_handle).at(0).references, 2u);
}

TEST_F(VirtualMemoryTest, a_second_value_for_live_memory_adds_no_bytes_but_keeps_it) {
  create(handle);
  map(base, handle);
  writer->virtual_memory.retained_from_mapping(base, {0x88});
  expect_live(reader(), {1, 2 * MiB});
  writer->virtual_memory.release_begin(handle);
  unmap(base);
  expect_live(reader(), {1, 2 * MiB});
  map(at(4), {0x88});
  writer->virtual_memory.release_begin({0x88});
  writer->virtual_memory.release_undo({0x88});
  unmap(at(4));
  expect_live(reader(), {1, 2 * MiB});
  writer->virtual_memory.release_begin({0x88});
  expect_live(reader(), {0, 0});
  writer->virtual_memory.release_undo({0x88});
  expect_live(reader(), {1, 2 * MiB});
}

TEST_F(VirtualMemoryTest, rows_are_used_again) {
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    create({i + 1});
    map(at(i % 100), {i + 1});
    unmap(at(i % 100));
    writer->virtual_memory.release_begin({i + 1});
  }
  expect_live(reader(), {0, 0});
  // The rows are those that an undo may need, and one block of rows for each shard.
  EXPECT_LT(reader().rows(RegionId::records), 4096u * 2 + 64 * 64 + 100);
}

}  // namespace
}  // namespace cuwarden::ledger
