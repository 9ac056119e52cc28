// A ledger in a folder of its own, and the sums that a reader computes from it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime_hooks/ledger/read/group_sums.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace cuwarden::ledger {

// Names of the hooks in a test's ledger; the index of a name is its HookId.
inline constexpr std::array<std::string_view, 3> test_hooks = {"cudaMalloc", "cuMemAlloc_v2",
                                                               "cuMemCreate"};

// Makes a ledger in the folder. `largest_file_bytes`: largest size of its file; 0: no limit of its
// own. Returns null if that fails.
inline Writer* make_writer(const char* folder, std::uint64_t largest_file_bytes = 0) {
  const std::array<const char*, 1> folders = {folder};
  Creation creation;
  creation.folders = folders;
  creation.hook_names = test_hooks;
  creation.report_path = "/reports/report.json";
  creation.largest_file_bytes = largest_file_bytes;
  return Writer::create(creation);
}

// Returns a reader of the writer's ledger. Fails the test if the ledger cannot be read.
inline Reader read(const Writer& writer) {
  ReadError error;
  std::optional<Reader> reader = Reader::open(writer.file.bytes(), error);
  EXPECT_FALSE(error) << error.text;
  return reader.value();
}

// Number of allocations and their bytes.
struct Sum {
  // Number of the allocations, and their bytes together.
  std::uint64_t count = 0, bytes = 0;
  friend bool operator==(const Sum&, const Sum&) = default;
};
// Writes the sum in words, for messages of failed tests.
inline std::ostream& operator<<(std::ostream& out, const Sum& sum) {
  return out << sum.count << " allocations, " << sum.bytes << " bytes";
}

// Returns all records of live allocations in the ledger.
inline std::vector<RecordView> records(const Reader& reader) {
  std::vector<RecordView> found;
  for (std::uint64_t i = 1; i < reader.rows(RegionId::records); ++i) {
    if (const auto record = reader.record(i)) found.push_back(*record);
  }
  return found;
}

// Returns the sum of the live allocations' records, without records whose bytes do not count.
inline Sum live_in_records(const Reader& reader) {
  Sum sum;
  for (const RecordView& record : records(reader)) {
    if ((record.flags & record_counts_no_bytes) != 0) continue;
    ++sum.count;
    sum.bytes += record.bytes.value;
  }
  return sum;
}
// Returns the sum of the live allocations that the groups count.
inline Sum live_in_groups(const Reader& reader) {
  Sum sum;
  for (std::uint64_t i = 1; i < reader.rows(RegionId::groups); ++i) {
    if (const auto group = reader.group(i)) {
      sum.count += group->live_count;
      sum.bytes += group->live_bytes;
    }
  }
  return sum;
}
// Returns the sum of the live allocations that the series (totals by kind and device) count.
inline Sum live_in_series(const Reader& reader) {
  const GroupSums sums(reader);
  Sum sum;
  for (std::uint64_t i = 1; i < reader.rows(RegionId::series); ++i) {
    auto series = reader.series(i);
    if (series && !series->host_rss) {
      sums.put_into(*series);
      sum.count += series->live_count;
      sum.bytes += series->live_bytes;
    }
  }
  return sum;
}
// Fails the test unless the ledger's records, its groups and its series all have the sum `expected`
// of live allocations.
inline void expect_live(const Reader& reader, const Sum& expected) {
  EXPECT_EQ(live_in_records(reader), expected);
  EXPECT_EQ(live_in_groups(reader), expected);
  EXPECT_EQ(live_in_series(reader), expected);
}

// A test with a ledger in a folder of its own.
class LedgerTest : public ::testing::Test {
 protected:
  // Fails the test if the ledger could not be made.
  void SetUp() override { ASSERT_NE(writer, nullptr); }

  // Returns a group of allocations of this kind on this device, by the function `api` (index in
  // test_hooks). Each `api` has a call stack of its own.
  GroupId device_group(std::uint16_t api = 0, Kind kind = Kind::device,
                       DeviceOrdinal device = {0}) {
    const std::array<Frame, 2> frames = {Frame{0x1000} + api, 0x2000};
    return writer->groups.get({writer->stacks.intern(frames, false), HookId{api}, kind, device});
  }
  // Adds a record of `bytes` at `address` to the group.
  void add(std::uint64_t address, std::uint64_t bytes, GroupId group) {
    NewRecord record;
    record.space = Space::pointer;
    record.address = DeviceAddress{address};
    record.bytes = ByteCount{bytes};
    record.group = group;
    writer->allocations.add(record);
  }
  // Removes the record of the allocation at `address` from the ledger, and returns it; empty if
  // there is none.
  TakenRecord take(std::uint64_t address) {
    return writer->allocations.take(Space::pointer, DeviceAddress{address});
  }
  // Returns a reader of the test's ledger.
  Reader reader() const { return read(*writer); }
  // Returns the row of this group as a reader sees it.
  GroupView group(GroupId id) const { return reader().group(id.value).value(); }

  TemporaryFolder folder;                       // the folder of the ledger's file
  Writer* writer = make_writer(folder.path());  // the test's ledger; null if it could not be made
};

}  // namespace cuwarden::ledger
