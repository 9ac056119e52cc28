// A process is killed at any moment; its file then has everything that it had acknowledged. A
// forked child does not get the parent's ledger.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <map>
#include <random>
#include <thread>

#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "tests/comes_about.hpp"
#include "tests/contract/ledger/child_process.hpp"
#include "tests/repetitions.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

constexpr std::uint64_t thread_count = 2, slot_count = 2000;

// The child states for each address the bytes that are live there, 0 if none are, or `changing`
// while it allocates or frees there.
constexpr std::uint64_t changing = UINT64_MAX;
struct Acknowledged {
  std::atomic<std::uint64_t> operations;
  char path[512];
  std::atomic<std::uint64_t> bytes[thread_count][slot_count];
};

constexpr std::uint64_t address_of(std::uint64_t thread, std::uint64_t slot) {
  return (thread * slot_count + slot + 1) * 512;
}

void hammer(Writer* writer, Acknowledged& told, std::uint64_t thread, unsigned seed) {
  std::minstd_rand random(seed);
  for (;;) {
    const std::uint64_t slot = random() % slot_count;
    std::atomic<std::uint64_t>& state = told.bytes[thread][slot];
    const std::uint64_t held = state.load();
    state.store(changing);
    if (held == 0) {
      const std::array<Frame, 2> frames = {random() % 5000, 0x10};
      NewRecord record;
      record.group = writer->groups.get(
          {writer->stacks.intern(frames, false), HookId{0}, Kind::device, DeviceOrdinal{0}});
      record.address = DeviceAddress{address_of(thread, slot)};
      record.bytes = ByteCount{random() % 100'000 + 1};
      writer->allocations.add(record);
      state.store(record.bytes.value);
    } else {
      const TakenRecord taken =
          writer->allocations.take(Space::pointer, {address_of(thread, slot)});
      if (random() % 8 == 0) {
        writer->allocations.put_back(taken);
        state.store(held);
      } else {
        state.store(0);
      }
    }
    told.operations.fetch_add(1);
  }
}

TEST(LedgerKill, nothing_acknowledged_is_lost_or_kept_too_long) {
  const TemporaryFolder folder;
  std::mt19937 random(12345);
  std::uint64_t checked = 0;
  const std::uint64_t rounds = test::repetitions(60, 1000);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Mapping shared(mmap(nullptr, sizeof(Acknowledged), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0),
                         sizeof(Acknowledged));
    auto& told = *static_cast<Acknowledged*>(shared.data());
    const pid_t child = fork();
    if (child == 0) {
      Writer* const writer = make_writer(folder.path());
      writer->file.path().copy(told.path, sizeof told.path - 1);
      const auto seed = static_cast<unsigned>(round);
      std::thread second([&] { hammer(writer, told, 1, seed * 2 + 1); });
      hammer(writer, told, 0, seed * 2 + 2);
    }
    bool has_ended = false;
    const bool has_begun = comes_about([&] {
      has_ended = waitpid(child, nullptr, WNOHANG) == child;
      return has_ended || told.operations.load() >= 1;
    });
    ASSERT_FALSE(has_ended) << "the child has died by itself";
    if (!has_begun) kill(child, SIGKILL);
    ASSERT_TRUE(has_begun) << "the child records nothing";
    // Every moment must pass, so it is left to chance. A slow machine only changes what is met.
    usleep(static_cast<useconds_t>(random() % 8000));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);

    const int file = open(told.path, O_RDONLY);
    ASSERT_GE(file, 0);
    struct stat status {};
    fstat(file, &status);
    const auto size = static_cast<std::size_t>(status.st_size);
    const Mapping bytes(mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0), size);
    close(file);
    ReadError error;
    const auto reader = Reader::open(bytes.bytes(), error);
    ASSERT_TRUE(reader) << error.text;
    EXPECT_EQ(reader->process().pid, static_cast<std::uint32_t>(child));
    EXPECT_EQ(reader->process().end_reason, EndReason::running);

    std::map<std::uint64_t, std::uint64_t> live;
    for (const RecordView& record : records(*reader)) {
      EXPECT_TRUE(live.emplace(record.address.value, record.bytes.value).second) << "listed twice";
      const auto group = reader->group(record.group.value);
      ASSERT_TRUE(group);
      const auto stack = reader->stack(group->stack.value);
      ASSERT_TRUE(stack);
      EXPECT_EQ(stack->frames.size(), 2u);
      EXPECT_EQ(stack->frames[1], 0x10u);
    }
    Sum acknowledged;
    for (std::uint64_t thread = 0; thread < thread_count; ++thread) {
      for (std::uint64_t slot = 0; slot < slot_count; ++slot) {
        const std::uint64_t held = told.bytes[thread][slot].load();
        if (held == changing) continue;
        const auto found = live.find(address_of(thread, slot));
        if (held == 0) {
          EXPECT_EQ(found, live.end()) << "freed, but still listed";
        } else {
          ASSERT_NE(found, live.end()) << "lost";
          EXPECT_EQ(found->second, held);
          ++acknowledged.count;
        }
        ++checked;
      }
    }
    // Sums may differ by one operation for each thread that was interrupted in it.
    EXPECT_LE(live_in_groups(*reader).count, acknowledged.count + thread_count);
    EXPECT_GE(live_in_groups(*reader).count + thread_count, acknowledged.count);
  }
  EXPECT_GT(checked, static_cast<std::size_t>(rounds) * slot_count);
}

TEST(LedgerFork, the_child_has_no_part_of_the_parents_ledger) {
  const TemporaryFolder folder;
  Writer* const writer = make_writer(folder.path());
  NewRecord record;
  record.group = writer->groups.get({StackId{1}, HookId{0}, Kind::device, DeviceOrdinal{0}});
  record.address = DeviceAddress{512};
  record.bytes = ByteCount{100};
  writer->allocations.add(record);
  void* const mapped = const_cast<std::byte*>(writer->file.bytes().data());
  unsigned char resident = 0;
  ASSERT_EQ(mincore(mapped, page_bytes, &resident), 0);
  const std::string parents_path(writer->file.path());

  expect_child_succeeds([&] {
    CHILD_EXPECT(mincore(mapped, page_bytes, &resident) != 0 && errno == ENOMEM);
    // The child may have a ledger of its own.
    Writer* const own = make_writer(folder.path());
    CHILD_EXPECT(own != nullptr && own->file.path() != parents_path);
    CHILD_EXPECT(own->threads.mine().value == 1);
    CHILD_EXPECT(live_in_records(read(*own)) == Sum{});
    own->file.remove();
  });
  EXPECT_TRUE(std::filesystem::exists(parents_path));
  expect_live(read(*writer), {1, 100});
}

}  // namespace
}  // namespace cuwarden::ledger
