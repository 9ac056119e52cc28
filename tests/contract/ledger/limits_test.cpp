// Under any limits of the host, recording goes on, the totals are right, and no signal comes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/names.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "tests/contract/ledger/child_process.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif
#else
constexpr bool sanitized = false;
#endif

void limit(__rlimit_resource_t resource, rlim_t value) {
  const rlimit both{value, value};
  CHILD_EXPECT(setrlimit(resource, &both) == 0);
}

// Adds and frees records, and expects that the reader finds the remaining ones.
void expect_recording_works(Writer* writer, std::uint64_t count) {
  CHILD_EXPECT(writer != nullptr);
  for (std::uint64_t i = 1; i <= count; ++i) {
    const std::array<Frame, 3> frames = {i % 1000, i % 7, 0x10};
    const GroupId group = writer->groups.get(
        {writer->stacks.intern(frames, false), HookId{0}, Kind::device, DeviceOrdinal{0}});
    NewRecord record;
    record.address = DeviceAddress{i * 512};
    record.bytes = ByteCount{i};
    record.group = group;
    writer->allocations.add(record);
  }
  Sum expected;
  for (std::uint64_t i = 1; i <= count; ++i) {
    if (i % 2 == 0) {
      writer->allocations.take(Space::pointer, DeviceAddress{i * 512});
    } else {
      ++expected.count;
      expected.bytes += i;
    }
  }
  const Reader reader = read(*writer);
  CHILD_EXPECT(live_in_records(reader) == expected);
  CHILD_EXPECT(live_in_groups(reader) == expected);
  CHILD_EXPECT(live_in_series(reader) == expected);
  CHILD_EXPECT(reader.process().program.starts_with("/"));
  for (std::uint64_t i = 1; i < reader.rows(RegionId::stacks); ++i) {
    CHILD_EXPECT(reader.stack(i)->frames.back() == 0x10);
  }
}

std::uint32_t reasons(Writer* writer) { return read(*writer).process().reasons; }

TEST(LedgerLimits, with_a_missing_folder_the_ledger_is_in_memory) {
  expect_child_succeeds([] {
    Writer* const writer = make_writer("/nonexistent/folder");
    expect_recording_works(writer, 20'000);
    CHILD_EXPECT(reasons(writer) == reason_ledger_in_memory);
    CHILD_EXPECT(writer->file.path().empty());
    writer->file.remove();
  });
}

TEST(LedgerLimits, the_first_folder_that_works_is_used) {
  const TemporaryFolder folder;
  expect_child_succeeds([&] {
    // /proc cannot be written to, and the shared memory folder may be absent.
    const std::array<const char*, 4> folders = {"/proc/self", nullptr, "/nonexistent/shm",
                                                folder.path()};
    Creation creation;
    creation.folders = folders;
    Writer* const writer = Writer::create(creation);
    CHILD_EXPECT(writer->file.path().starts_with(folder.path()));
    expect_recording_works(writer, 2'000);
    CHILD_EXPECT(reasons(writer) == 0);
  });
}

TEST(LedgerLimits, with_a_read_only_folder_the_ledger_is_in_memory) {
  const TemporaryFolder folder;
  expect_child_succeeds([&] {
    mount_tmpfs(folder.path(), "size=1m", MS_RDONLY);
    Writer* const writer = make_writer(folder.path());
    expect_recording_works(writer, 2'000);
    CHILD_EXPECT(reasons(writer) == reason_ledger_in_memory);
  });
}

TEST(LedgerLimits, under_a_small_file_size_limit_the_ledger_is_in_memory) {
  const TemporaryFolder folder;
  expect_child_succeeds([&] {
    limit(RLIMIT_FSIZE, 1 << 20);
    Writer* const writer = make_writer(folder.path());
    expect_recording_works(writer, 100'000);
    CHILD_EXPECT(reasons(writer) == reason_ledger_in_memory);
    CHILD_EXPECT(std::filesystem::is_empty(folder.path()));
  });
}

TEST(LedgerLimits, under_a_moderate_file_size_limit_the_file_is_smaller) {
  const TemporaryFolder folder;
  for (const bool without_populate : {false, true}) {
    expect_child_succeeds([&] {
      limit(RLIMIT_FSIZE, 300 << 20);
      const std::array<const char*, 1> folders = {folder.path()};
      Creation creation;
      creation.folders = folders;
      creation.without_populate = without_populate;
      Writer* const writer = Writer::create(creation);
      expect_recording_works(writer, 100'000);
      CHILD_EXPECT(reasons(writer) == 0);
      const std::uint64_t size = std::filesystem::file_size(writer->file.path());
      CHILD_EXPECT(size <= (300 << 20) && size > (64 << 20));
    });
  }
}

TEST(LedgerLimits, under_an_address_space_limit_the_host_keeps_most_of_it) {
  if (sanitized) GTEST_SKIP() << "a sanitizer needs the address space itself";
  const TemporaryFolder folder;
  for (const rlim_t left : {rlim_t{2} << 30, rlim_t{256} << 20, rlim_t{32} << 20}) {
    expect_child_succeeds([&] {
      std::uint64_t pages = 0;
      std::ifstream("/proc/self/statm") >> pages;
      limit(RLIMIT_AS, pages * 4096 + left);
      Writer* const writer = make_writer(folder.path());
      CHILD_EXPECT(writer != nullptr);
      CHILD_EXPECT(writer->file.bytes().size() <= left / 8);
      expect_recording_works(writer, 2'000);
      void* const host = mmap(nullptr, left / 2, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      CHILD_EXPECT(host != MAP_FAILED);
    });
  }
}

TEST(LedgerLimits, a_full_disk_moves_the_rest_into_memory) {
  const TemporaryFolder folder;
  for (const bool without_populate : {false, true}) {
    expect_child_succeeds([&] {
      mount_tmpfs(folder.path(), "size=16m");
      const std::array<const char*, 1> folders = {folder.path()};
      Creation creation;
      creation.folders = folders;
      creation.without_populate = without_populate;
      Writer* const writer = Writer::create(creation);
      CHILD_EXPECT(writer->file.path().starts_with(folder.path()));
      expect_recording_works(writer, 100'000);  // 6.4 MB of records.
      CHILD_EXPECT(reasons(writer) == reason_ledger_partly_in_memory);

      // Another process finds the part that fitted onto the disk, and no nonsense in it.
      const int file = open(std::string(writer->file.path()).c_str(), O_RDONLY);
      const std::size_t size = writer->file.bytes().size();
      void* const seen = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
      CHILD_EXPECT(seen != MAP_FAILED);
      ReadError error;
      const auto reader = Reader::open({static_cast<const std::byte*>(seen), size}, error);
      CHILD_EXPECT(reader.has_value());
      const auto found = records(*reader);
      CHILD_EXPECT(found.size() > 1000 && found.size() < 50'000);
      for (const RecordView& record : found) {
        CHILD_EXPECT(record.address.value == record.bytes.value * 512);
      }
    });
  }
}

TEST(LedgerLimits, on_a_full_disk_the_ledger_is_in_memory) {
  const TemporaryFolder folder;
  expect_child_succeeds([&] {
    mount_tmpfs(folder.path(), "size=64k");
    std::ofstream(std::string(folder.path()) + "/ballast") << std::string(128 << 10, 'x');
    Writer* const writer = make_writer(folder.path());
    expect_recording_works(writer, 20'000);
    CHILD_EXPECT((reasons(writer) & ~std::uint32_t{reason_ledger_partly_in_memory}) ==
                 reason_ledger_in_memory);
    CHILD_EXPECT(!std::filesystem::exists(writer->file.path()));
  });
}

TEST(LedgerLimits, a_file_that_was_replaced_does_not_grow_but_recording_goes_on) {
  const TemporaryFolder folder;
  expect_child_succeeds([&] {
    const std::array<const char*, 1> folders = {folder.path()};
    Creation creation;
    creation.folders = folders;
    creation.without_populate = true;
    Writer* const writer = Writer::create(creation);
    const std::string path(writer->file.path());
    std::filesystem::rename(path, path + ".moved");
    std::ofstream(path) << "not the ledger";
    expect_recording_works(writer, 100'000);
    CHILD_EXPECT(reasons(writer) == reason_ledger_partly_in_memory);
    CHILD_EXPECT(std::filesystem::file_size(path) == std::strlen("not the ledger"));
  });
}

TEST(LedgerLimits, a_full_table_is_reported_and_the_totals_match_the_stored_records) {
  const TemporaryFolder folder;
  expect_child_succeeds([&] {
    Writer* const writer = make_writer(folder.path(), 2 << 20);
    NewRecord record;
    record.group = writer->groups.get({StackId{1}, HookId{0}, Kind::device, DeviceOrdinal{0}});
    record.bytes = ByteCount{10};
    for (std::uint64_t i = 1; i <= 50'000; ++i) {
      record.address = DeviceAddress{i * 512};
      writer->allocations.add(record);
    }
    CHILD_EXPECT(reasons(writer) == reason_ledger_full);
    const Reader reader = read(*writer);
    const Sum stored = live_in_records(reader);
    CHILD_EXPECT(stored.count > 8'000 && stored.count < 50'000);
    CHILD_EXPECT(live_in_groups(reader) == stored);
    CHILD_EXPECT(live_in_series(reader) == stored);
    for (std::uint64_t i = 1; i <= 50'000; ++i) {
      writer->allocations.take(Space::pointer, DeviceAddress{i * 512});
    }
    CHILD_EXPECT(live_in_series(reader) == Sum{});
    for (Frame i = 0; i < 50'000; ++i) {
      const std::array<Frame, 2> frames = {i, i};
      const StackId stack = writer->stacks.intern(frames, false);
      CHILD_EXPECT(stack.value < reader.rows(RegionId::stacks));
      writer->names.count_unhooked_lookup(std::to_string(i % 2000));
    }
  });
}

}  // namespace
}  // namespace cuwarden::ledger
