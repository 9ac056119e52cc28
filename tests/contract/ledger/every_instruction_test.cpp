// A process may die, or be read by another one, between any two instructions. The child is stepped
// through its recording one instruction at a time; after each, its file must make sense.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>

#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "tests/contract/ledger/child_process.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

// Shared with the parent: the state of the record that the child promises at this instruction.
struct Told {
  // The record must be live with so many bytes; 0: it may be live or not.
  std::atomic<std::uint64_t> certain;
  std::atomic<std::uint64_t> gone;  // 1: no record may be live.
  char path[512];
};

constexpr std::uint64_t first_bytes = 0x1111, second_bytes = 0x2222;

// Returns a record whose fields are all derived from its bytes, so that a mixture of two shows.
NewRecord record_of(std::uint64_t bytes, GroupId group) {
  NewRecord record;
  record.address = DeviceAddress{512};
  record.bytes = ByteCount{bytes};
  record.context = ContextId{bytes * 3};
  record.related = bytes * 7;
  record.group = group;
  return record;
}

[[noreturn]] void record_step_by_step(const char* folder, Told& told) {
  Writer* const writer = make_writer(folder);
  writer->file.path().copy(told.path, sizeof told.path - 1);
  const GroupId group = writer->groups.get({StackId{1}, HookId{0}, Kind::device, DeviceOrdinal{0}});
  // Tables and pages are made before the first step.
  writer->allocations.add(record_of(first_bytes, group));
  writer->allocations.take(Space::pointer, DeviceAddress{512});
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(skipped_status);
  raise(SIGSTOP);
  for (const std::uint64_t bytes : {first_bytes, second_bytes}) {
    told.gone = 0;
    writer->allocations.add(
        record_of(bytes, group));  // The record goes into the row that the last one left.
    told.certain = bytes;
    told.certain = 0;
    const TakenRecord taken = writer->allocations.take(Space::pointer, DeviceAddress{512});
    told.gone = 1;
    told.gone = 0;
    writer->allocations.put_back(taken);
    told.certain = bytes;
    told.certain = 0;
    writer->allocations.take(Space::pointer, DeviceAddress{512});
    told.gone = 1;
  }
  _exit(0);
}

TEST(LedgerEveryInstruction, no_record_is_ever_seen_half_written) {
  const TemporaryFolder folder;
  const Mapping shared(
      mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
      sizeof(Told));
  auto& told = *static_cast<Told*>(shared.data());
  const pid_t child = fork();
  if (child == 0) record_step_by_step(folder.path(), told);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (!WIFSTOPPED(status)) GTEST_SKIP() << "not permitted to trace here";

  const int file = open(told.path, O_RDONLY);
  struct stat about {};
  ASSERT_EQ(fstat(file, &about), 0);
  const auto size = static_cast<std::size_t>(about.st_size);
  const Mapping bytes(mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0), size);
  close(file);
  ReadError error;
  const auto reader = Reader::open(bytes.bytes(), error);
  ASSERT_TRUE(reader) << error.text;

  std::uint64_t steps = 0, wrong = 0, seen_live = 0, seen_gone = 0;
  while (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0 &&
         waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    ++steps;
    const std::uint64_t certain = told.certain, gone = told.gone;
    std::uint64_t live = 0;
    for (std::uint64_t i = 1; i < std::min<std::uint64_t>(reader->rows(RegionId::records), 4000);
         ++i) {
      const auto record = reader->record(i);
      if (!record) continue;
      ++live;
      const std::uint64_t held = record->bytes.value;
      const bool whole = (held == first_bytes || held == second_bytes) &&
                         record->context.value == held * 3 && record->related == held * 7 &&
                         record->address.value == 512 && record->group.value == 1;
      wrong += whole && (certain == 0 || held == certain) ? 0 : 1;
    }
    wrong += live > 1 || (certain != 0 && live == 0) || (gone != 0 && live != 0) ? 1 : 0;
    seen_live += live;
    seen_gone += live == 0 ? 1 : 0;
    const auto group = reader->group(1);
    wrong += group && group->live_count <= 1 && group->live_bytes <= second_bytes ? 0 : 1;
    if (wrong > 0) break;
  }
  if (wrong > 0) kill(child, SIGKILL);
  EXPECT_EQ(wrong, 0u) << "after " << steps << " steps";
  EXPECT_GT(steps, 1000u);
  EXPECT_GT(seen_live, 100u);
  EXPECT_GT(seen_gone, 100u);
  EXPECT_TRUE(WIFEXITED(status));
}

}  // namespace
}  // namespace cuwarden::ledger
