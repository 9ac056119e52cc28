// The writer: after each call of it, a reader finds the expected rows.
#include "runtime_hooks/ledger/write/writer.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <thread>

#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/ledger/write/names.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "tests/repetitions.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

TEST_F(LedgerTest, the_file_is_private_and_named_for_the_process) {
  const std::string path(writer->file.path());
  ASSERT_TRUE(path.starts_with(std::string(folder.path()) + "/cuwarden-ledger-")) << path;
  EXPECT_TRUE(path.ends_with("-" + std::to_string(getpid()))) << path;
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
  EXPECT_LT(status.st_blocks * 512, 4 << 20) << "the file must be sparse";
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    EXPECT_NE(std::filesystem::read_symlink(entry, gone).string(), path) << "left open";
  }
  writer->file.remove();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(writer->file.path().empty());
}

TEST_F(LedgerTest, a_file_that_took_the_ledgers_name_is_not_removed) {
  const std::string path(writer->file.path());
  std::filesystem::rename(path, path + ".moved");
  std::ofstream(path) << "another program's file";
  writer->file.remove();
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(LedgerTest, the_process_is_described) {
  const ProcessView process = reader().process();
  EXPECT_EQ(process.pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(process.parent, static_cast<std::uint32_t>(getppid()));
  EXPECT_EQ(process.program, std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_NE(process.command_line.find('\0'), std::string_view::npos);
  EXPECT_EQ(process.report_path, "/reports/report.json");
  EXPECT_EQ(process.reasons, 0u);
  EXPECT_EQ(process.end_reason, EndReason::running);
  EXPECT_FALSE(process.exit_status.has_value());
  EXPECT_GT(process.start_ticks, 0u);
  EXPECT_TRUE(std::any_of(process.boot_id.begin(), process.boot_id.end(),
                          [](std::uint8_t byte) { return byte != 0; }));
}

TEST_F(LedgerTest, the_file_is_locked_for_as_long_as_it_is_mapped) {
  const int file = open(std::string(writer->file.path()).c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  const bool held = flock(file, LOCK_SH | LOCK_NB) != 0;
  EXPECT_EQ(reader().process().lock_held, held);
  struct statfs system {};
  ASSERT_EQ(fstatfs(file, &system), 0);
  constexpr long overlay = 0x794c7630;  // overlayfs maps another file than the one that was opened
  EXPECT_EQ(held, system.f_type != overlay);
  const std::span<const std::byte> bytes = writer->file.bytes();
  munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
  EXPECT_EQ(flock(file, LOCK_SH | LOCK_NB), 0) << "the process is gone, and its lock with it";
  close(file);
}

TEST_F(LedgerTest, an_allocation_is_live_until_it_is_freed) {
  const GroupId id = device_group();
  add(0x7000, 100, id);
  add(0x8000, 50, id);
  expect_live(reader(), {2, 150});
  const auto found = records(reader());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].group, id);
  EXPECT_EQ(found[0].thread, writer->threads.mine());

  const TakenRecord taken = take(0x7000);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken.fields.bytes.value, 100u);
  expect_live(reader(), {1, 50});
  EXPECT_FALSE(take(0x7000));

  const GroupView totals = group(id);
  EXPECT_EQ(totals.allocations, 2u);
  EXPECT_EQ(totals.allocated_bytes, 150u);
  EXPECT_EQ(totals.frees, 1u);
  EXPECT_GT(totals.first_ns, 0u);
  EXPECT_GE(totals.last_ns, totals.first_ns);
}

TEST_F(LedgerTest, a_refused_free_changes_nothing) {
  const GroupId id = device_group();
  add(0x7000, 100, id);
  const RecordView before = records(reader()).at(0);
  writer->allocations.put_back(take(0x7000));
  const RecordView after = records(reader()).at(0);
  EXPECT_EQ(after.id, before.id);
  EXPECT_EQ(after.time_ns, before.time_ns);
  expect_live(reader(), {1, 100});
  EXPECT_EQ(group(id).frees, 0u);
  EXPECT_EQ(group(id).allocations, 1u);
  EXPECT_TRUE(take(0x7000));
}

TEST_F(LedgerTest, equal_numbers_in_different_spaces_are_different_allocations) {
  const GroupId id = device_group();
  add(0x7000, 100, id);
  NewRecord array;
  array.space = Space::array;
  array.address = DeviceAddress{0x7000};
  array.bytes = ByteCount{7};
  array.group = device_group(1, Kind::array);
  writer->allocations.add(array);
  expect_live(reader(), {2, 107});
  writer->allocations.take(Space::array, DeviceAddress{0x7000});
  expect_live(reader(), {1, 100});
}

TEST_F(LedgerTest, an_address_handed_out_twice_supersedes_the_first) {
  const GroupId id = device_group();
  add(0x7000, 100, id);
  add(0x7000, 30, id);
  expect_live(reader(), {1, 30});
  EXPECT_EQ(group(id).frees, 1u);
  EXPECT_EQ(reader().process().superseded, 1u);
  EXPECT_TRUE(reader().process().reasons & reason_superseded);
}

TEST_F(LedgerTest, a_refused_free_raises_the_peak_that_others_have_reached_meanwhile) {
  const GroupId id = device_group();
  add(0x7000, 100, id);
  const TakenRecord taken = take(0x7000);
  add(0x8000, 200, id);
  writer->allocations.put_back(taken);
  EXPECT_EQ(group(id).live_bytes, 300u);
  EXPECT_EQ(reader().series(1)->peak_bytes, 300u);
}

TEST_F(LedgerTest, a_record_put_back_after_its_address_was_reused_is_counted_as_freed) {
  const GroupId id = device_group();
  add(0x7000, 100, id);
  const TakenRecord taken = take(0x7000);
  add(0x7000, 30, id);
  writer->allocations.put_back(taken);
  expect_live(reader(), {1, 30});
  EXPECT_EQ(group(id).frees, 1u);
  EXPECT_EQ(group(id).allocations, 2u);
}

TEST_F(LedgerTest, a_contexts_end_releases_what_it_owns) {
  const GroupId id = device_group();
  NewRecord record;
  record.group = id;
  record.context = ContextId{5};
  record.flags = record_owned_by_context;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    record.address = DeviceAddress{i * 0x1000};
    record.bytes = ByteCount{i};
    writer->allocations.add(record);
  }
  record.address = DeviceAddress{0xa0000};  // belongs to another context
  record.context = ContextId{6};
  writer->allocations.add(record);
  record.address = DeviceAddress{0xb0000};  // not owned
  record.context = ContextId{5};
  record.flags = 0;
  writer->allocations.add(record);

  writer->allocations.release_context(ContextId{5});
  expect_live(reader(), {2, 20});
  EXPECT_EQ(group(id).released_count, 10u);
  EXPECT_EQ(group(id).released_bytes, 55u);
  EXPECT_EQ(group(id).frees, 0u);
  EXPECT_FALSE(take(0x1000));
}

TEST_F(LedgerTest, equal_stacks_get_equal_ids) {
  const std::array<Frame, 3> frames = {0x10, 0x20, 0x30};
  const std::array<Frame, 3> others = {0x10, 0x20, 0x31};
  const StackId id = writer->stacks.intern(frames, false);
  EXPECT_NE(id.value, 0u);
  EXPECT_EQ(writer->stacks.intern(frames, false), id);
  EXPECT_NE(writer->stacks.intern(others, false), id);
  EXPECT_NE(writer->stacks.intern(frames, true), id) << "a cut stack is another one";
  EXPECT_NE(writer->stacks.intern(std::span(frames).first(2), false), id);
  const StackId none = writer->stacks.intern({}, false);
  EXPECT_NE(none.value, 0u);
  EXPECT_EQ(writer->stacks.intern({}, false), none);

  const auto stack = reader().stack(id.value);
  ASSERT_TRUE(stack);
  EXPECT_TRUE(std::equal(stack->frames.begin(), stack->frames.end(), frames.begin(), frames.end()));
  EXPECT_FALSE(stack->truncated);
  EXPECT_TRUE(reader().stack(none.value)->frames.empty());
}

TEST_F(LedgerTest, many_stacks_and_groups_stay_distinct) {
  std::set<std::uint32_t> stacks, groups;
  for (Frame i = 0; i < 20'000; ++i) {
    const std::array<Frame, 4> frames = {i, 0x20, i * 7, 0x30};
    const StackId stack = writer->stacks.intern(frames, false);
    stacks.insert(stack.value);
    groups.insert(writer->groups.get({stack, HookId{0}, Kind::device, DeviceOrdinal{0}}).value);
  }
  EXPECT_EQ(stacks.size(), 20'000u);
  EXPECT_EQ(groups.size(), 20'000u);
  for (Frame i = 0; i < 20'000; i += 777) {
    const std::array<Frame, 4> frames = {i, 0x20, i * 7, 0x30};
    EXPECT_TRUE(stacks.contains(writer->stacks.intern(frames, false).value));
  }
  EXPECT_EQ(stacks.size(), 20'000u);
}

TEST_F(LedgerTest, many_live_allocations_cost_at_most_96_bytes_each) {
  const GroupId id = device_group();
  const auto resident = [] {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t total = 0, pages = 0;
    statm >> total >> pages;
    return pages * 4096;
  };
  const std::uint64_t count = test::repetitions(1'000'000);
  const std::uint64_t before = resident();
  for (std::uint64_t i = 1; i <= count; ++i) add(i * 512, 512, id);
  const std::uint64_t used = resident() - before;
#if !defined(CUWARDEN_SANITIZED)
  EXPECT_LE(used, count * 96);
#else
  (void)used;
#endif
  EXPECT_EQ(live_in_groups(reader()), (Sum{count, count * 512}));
  for (std::uint64_t i = 1; i <= count; ++i) take(i * 512);
  expect_live(reader(), {0, 0});
  const std::uint64_t rows = reader().rows(RegionId::records);
  for (std::uint64_t i = 1; i <= 10'000; ++i) add(i * 512, 512, id);
  EXPECT_EQ(reader().rows(RegionId::records), rows) << "freed rows are used again";
}

TEST_F(LedgerTest, counters_and_names_are_kept) {
  writer->thread_shards.count_call(HookId{1});
  writer->thread_shards.count_call(HookId{1});
  writer->thread_shards.count_call(HookId{9});  // not a hook
  writer->names.count_unhooked_lookup("cuMemFuture");
  writer->names.count_unhooked_lookup("cuMemFuture");
  writer->names.count_unhooked_lookup("cuMemOther");
  writer->allocations.count_unknown_free();
  const GroupId from = device_group();
  const IncidentFacts refusal{.bytes = 512};
  writer->incidents.failed(writer->incidents.refused(from, refusal, writer->threads.mine(), 1),
                           from, refusal, writer->threads.mine(), 2);
  writer->names.set_setting("stack_depth", "64", true);
  writer->names.set_environment("CUDA_VISIBLE_DEVICES", "0");
  writer->set_versions(13000, 0);
  writer->set_versions(0, 12090);
  writer->set_end(EndReason::exit, -3, true);

  const Reader read = reader();
  EXPECT_EQ(read.hook(1)->calls, 2u);
  EXPECT_EQ(read.hook(1)->name, "cuMemAlloc_v2");
  EXPECT_EQ(read.hook(0)->calls, 0u);
  EXPECT_FALSE(read.hook(3));
  EXPECT_EQ(read.unhooked_lookup(1)->name, "cuMemFuture");
  EXPECT_EQ(read.unhooked_lookup(1)->count, 2u);
  EXPECT_EQ(read.unhooked_lookup(2)->name, "cuMemOther");
  EXPECT_EQ(read.setting(1)->value, "64");
  EXPECT_TRUE(read.setting(1)->from_environment);
  EXPECT_EQ(read.environment(1)->name, "CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(group(device_group()).failures, 1u);
  const ProcessView process = read.process();
  EXPECT_EQ(process.recorded_calls, 2u);
  EXPECT_EQ(process.unknown_frees, 1u);
  EXPECT_EQ(process.driver_version, 13000);
  EXPECT_EQ(process.runtime_version, 12090);
  EXPECT_EQ(process.end_reason, EndReason::exit);
  EXPECT_EQ(process.exit_status, -3);
}

TEST_F(LedgerTest, devices_keep_their_last_reading) {
  const std::uint8_t uuid[16] = {1, 2, 3};
  writer->devices.note_reading(DeviceOrdinal{2}, {ReadingAt::last_call, 10, 5, 3});
  writer->devices.identify(DeviceOrdinal{2}, "Simulated H200", uuid);
  writer->devices.note_reading(DeviceOrdinal{2}, {ReadingAt::exit, 100, 40, std::nullopt});
  const auto device = reader().device(1);
  ASSERT_TRUE(device);
  EXPECT_EQ(device->ordinal.value, 2);
  EXPECT_EQ(device->name, "Simulated H200");
  EXPECT_EQ(device->uuid[2], 3);
  EXPECT_EQ(device->at, ReadingAt::exit);
  EXPECT_EQ(device->free_bytes, 40u);
  EXPECT_FALSE(reader().device(2));
}

TEST_F(LedgerTest, implicit_memory_is_kept_for_each_device_until_its_contexts_have_ended) {
  const std::uint8_t uuid[16] = {1};
  writer->devices.identify(DeviceOrdinal{2}, "Simulated H200", uuid);
  const auto of_device = [&] { return reader().device(1).value(); };
  writer->devices.change_implicit(DeviceOrdinal{2}, {.used_after_first_context_bytes = 500,
                                                     .module_bytes = 30,
                                                     .local_memory_bytes = 40,
                                                     .heap_bytes = 50,
                                                     .largest_local_bytes = 4096,
                                                     .largest_local_kernel = "deep"});
  writer->devices.change_implicit(DeviceOrdinal{2}, {.context_bytes = 7,
                                                     .module_bytes = -10,
                                                     .heap_bytes = -60,
                                                     .stream_bytes = 3,
                                                     .largest_local_bytes = 2048,
                                                     .largest_local_kernel = "less_deep"});
  const DeviceView device = of_device();
  EXPECT_EQ(device.implicit.used_after_first_context, 500u);
  EXPECT_EQ(device.implicit.further_contexts, 7u);
  EXPECT_EQ(device.implicit.modules, 20u);
  EXPECT_EQ(device.implicit.local_memory, 40u);
  EXPECT_EQ(device.implicit.heap, 0u);
  EXPECT_EQ(device.implicit.streams, 3u);
  EXPECT_EQ(device.implicit.largest_local, 4096u);
  EXPECT_EQ(device.largest_local_kernel, "deep");
  writer->devices.change_implicit(DeviceOrdinal{2}, {.given_back_bytes = 65});
  EXPECT_EQ(of_device().implicit.local_memory + of_device().implicit.modules, 0u);
  EXPECT_EQ(of_device().implicit.further_contexts, 2u);
  writer->devices.change_implicit(DeviceOrdinal{2}, {.contexts_ended = true});
  EXPECT_EQ(of_device().implicit.used_after_first_context, 0u);
  EXPECT_EQ(of_device().implicit.largest_local, 0u);
}

TEST_F(LedgerTest, the_same_kernels_name_is_stored_once) {
  const std::uint64_t before = reader().rows(RegionId::strings);
  for (int i = 0; i < 100; ++i) {
    writer->devices.change_implicit(
        DeviceOrdinal{0},
        {.contexts_ended = true, .largest_local_bytes = 4096, .largest_local_kernel = "deep"});
  }
  EXPECT_LT(reader().rows(RegionId::strings), before + 100);
  EXPECT_EQ(reader().rows(RegionId::devices), 2u);
}

TEST_F(LedgerTest, each_thread_has_a_row) {
  const ThreadId mine = writer->threads.mine();
  EXPECT_EQ(writer->threads.mine(), mine);
  ThreadId other;
  std::thread([&] {
    pthread_setname_np(pthread_self(), "worker");
    other = writer->threads.mine();
  }).join();
  EXPECT_NE(other, mine);
  EXPECT_EQ(reader().thread(other.value)->name, "worker");
  EXPECT_EQ(reader().thread(mine.value)->tid, static_cast<std::uint32_t>(gettid()));
}

TEST_F(LedgerTest, errno_is_preserved) {
  errno = 4711;
  const GroupId id = device_group();
  for (std::uint64_t i = 1; i < 5000; ++i) add(i, 1, id);
  writer->allocations.release_context(ContextId{1});
  writer->stacks.modules_changed();
  writer->totals.sample_host_rss(1, writer->time.now_ns());
  writer->file.remove();
  Writer* const other = make_writer("/nonexistent");
  EXPECT_EQ(errno, 4711);
  EXPECT_NE(other, nullptr);
}

TEST_F(LedgerTest, a_strict_umask_does_not_hide_the_ledger_from_its_owner) {
  const TemporaryFolder other_folder;
  const mode_t before = umask(0777);
  const Writer* const other = make_writer(other_folder.path());
  umask(before);
  EXPECT_EQ(std::filesystem::status(other->file.path()).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

}  // namespace
}  // namespace cuwarden::ledger
