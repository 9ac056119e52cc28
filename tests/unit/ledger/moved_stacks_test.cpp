// A stack stays the same if its files are loaded at other addresses. So the leaks of a plugin are
// one group, however often it is loaded. Stacks in other files, and in code without a file, stay
// apart.
#include "runtime_hooks/ledger/write/stacks/moved_stacks.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"
#include "tests/unit/ledger/test_library.hpp"

namespace cuwarden::ledger {
namespace {

namespace fs = std::filesystem;

class MovedStacksTest : public LedgerTest {
 protected:
  std::string copy_of(const std::string& library) {
    const std::string path = folder.path() + ("/copy" + std::to_string(copies_++) + ".so");
    fs::copy_file(library, path);
    return path;
  }
  StackId intern(const TestLibrary& library, Frame beside = frame_in_program()) {
    const std::array<Frame, 2> frames = {library.frame(), beside};
    return writer->stacks.intern(frames, false);
  }
  // Interns a stack in a library and unloads the library. Other mappings then take its addresses.
  StackId loaded_and_unloaded(const std::string& path, Frame* address = nullptr) {
    StackId id;
    Frame frame = 0;
    {
      const TestLibrary library(path);
      frame = library.frame();
      id = intern(library);
    }
    writer->stacks.modules_changed();
    void* const page = reinterpret_cast<void*>(frame / page_bytes * page_bytes);
    EXPECT_EQ(
        mmap(page, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
        page);
    taken_.emplace_back(page, page_bytes);
    if (address != nullptr) *address = frame;
    return id;
  }
  std::uint64_t rows(RegionId id) const { return reader().rows(id); }

 private:
  int copies_ = 0;
  std::vector<Mapping> taken_;
};

TEST_F(MovedStacksTest, a_library_that_is_loaded_again_has_the_same_stacks) {
  StackId first;
  for (int round = 0; round < 3; ++round) {
    const TestLibrary library(CUWARDEN_TEST_MODULE);
    const StackId id = intern(library);
    if (round == 0) first = id;
    EXPECT_EQ(id, first);
    EXPECT_EQ(intern(library), first) << "and is found again";
  }
  EXPECT_NE(first.value, 0u);
}

TEST_F(MovedStacksTest, a_library_that_comes_back_at_another_address_has_the_same_stacks) {
  Frame before = 0;
  const StackId first = loaded_and_unloaded(CUWARDEN_TEST_MODULE, &before);
  const TestLibrary library(CUWARDEN_TEST_MODULE);
  ASSERT_NE(library.frame(), before);
  bool added = true;
  const std::array<Frame, 2> frames = {library.frame(), frame_in_program()};
  EXPECT_EQ(writer->stacks.intern(frames, false, &added), first);
  EXPECT_FALSE(added);
  EXPECT_EQ(writer->stacks.intern(frames, false), first);
  EXPECT_NE(writer->stacks.intern(frames, true), first) << "a truncated stack is another stack";
  const Reader read = reader();
  const auto stack = read.stack(first.value);
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->frames[0], before) << "the stored stack is unchanged";
  EXPECT_EQ(read.module_at(before, stack->module_epoch)->path, CUWARDEN_TEST_MODULE);
}

TEST_F(MovedStacksTest, copies_of_a_file_are_one_file) {
  const StackId first = loaded_and_unloaded(copy_of(CUWARDEN_TEST_MODULE));
  const TestLibrary one(copy_of(CUWARDEN_TEST_MODULE)), two(copy_of(CUWARDEN_TEST_MODULE));
  ASSERT_NE(one.frame(), two.frame());
  EXPECT_EQ(intern(one), first);
  EXPECT_EQ(intern(two), first);
  EXPECT_EQ(intern(one), first);
}

TEST_F(MovedStacksTest, a_file_that_was_rebuilt_is_another_file) {
  const StackId first = loaded_and_unloaded(CUWARDEN_TEST_MODULE);
  const StackId rebuilt = loaded_and_unloaded(CUWARDEN_TEST_REBUILT_MODULE);
  EXPECT_NE(rebuilt, first);
  EXPECT_EQ(loaded_and_unloaded(CUWARDEN_TEST_MODULE), first);
  EXPECT_EQ(loaded_and_unloaded(CUWARDEN_TEST_REBUILT_MODULE), rebuilt);
}

TEST_F(MovedStacksTest, files_without_a_build_id_are_told_apart_by_path_and_functions) {
  const std::string path = copy_of(CUWARDEN_TEST_NAMELESS_MODULE);
  const StackId first = loaded_and_unloaded(path);
  EXPECT_EQ(loaded_and_unloaded(path), first);
  EXPECT_NE(loaded_and_unloaded(copy_of(CUWARDEN_TEST_NAMELESS_MODULE)), first);
  fs::remove(path);
  fs::copy_file(CUWARDEN_TEST_NAMELESS_REBUILT_MODULE, path);
  const StackId rebuilt = loaded_and_unloaded(path);
  EXPECT_NE(rebuilt, first);
  EXPECT_EQ(loaded_and_unloaded(path), rebuilt);
  const Reader read = reader();
  std::vector<std::uint32_t> files;
  for (std::uint64_t row = 1; row < read.rows(RegionId::modules); ++row) {
    const auto module = read.module(row);
    if (module && module->path == path) files.push_back(module->file.value);
  }
  ASSERT_EQ(files.size(), 2u);
  EXPECT_NE(files[0], files[1]);
}

TEST_F(MovedStacksTest, a_stack_that_is_new_in_a_library_that_came_back_has_its_module) {
  const StackId first = loaded_and_unloaded(CUWARDEN_TEST_MODULE);
  const TestLibrary library(CUWARDEN_TEST_MODULE);
  const StackId other = intern(library, frame_in_program() + 1);
  EXPECT_NE(other, first);
  const Reader read = reader();
  const auto stack = read.stack(other.value);
  const auto module = read.module_at(library.frame(), stack->module_epoch);
  ASSERT_TRUE(module);
  const auto before = read.module_at(read.stack(first.value)->frames[0], 0);
  ASSERT_TRUE(before);
  EXPECT_NE(module->id, before->id);
  EXPECT_EQ(module->file, before->file);
  EXPECT_EQ(module->file, before->id);
}

TEST_F(MovedStacksTest, any_number_of_reloads_takes_no_room) {
  const std::string path = CUWARDEN_TEST_MODULE;
  const StackId first = loaded_and_unloaded(path);
  const std::uint64_t stacks = rows(RegionId::stacks), frames = rows(RegionId::frames),
                      modules = rows(RegionId::modules), strings = rows(RegionId::strings);
  for (int round = 0; round < 500; ++round) {
    {
      const TestLibrary library(path);
      ASSERT_EQ(intern(library), first);
    }
    writer->stacks.modules_changed();
  }
  EXPECT_EQ(rows(RegionId::stacks), stacks);
  EXPECT_EQ(rows(RegionId::frames), frames);
  EXPECT_EQ(rows(RegionId::modules), modules);
  EXPECT_EQ(rows(RegionId::strings), strings);
}

TEST_F(MovedStacksTest, code_without_a_file_is_told_apart_by_its_addresses) {
  std::array<StackId, 2> ids;
  for (StackId& id : ids) {
    const Mapping code = Mapping::anonymous(page_bytes);
    const std::array<Frame, 2> frames = {reinterpret_cast<std::uintptr_t>(code.data()) + 8,
                                         frame_in_program()};
    id = writer->stacks.intern(frames, false);
    const Mapping kept = Mapping::anonymous(page_bytes);  // the next one lies elsewhere
    EXPECT_EQ(writer->stacks.intern(frames, false), id);
  }
  const Mapping one = Mapping::anonymous(page_bytes), two = Mapping::anonymous(page_bytes);
  const std::array<Frame, 1> in_one = {reinterpret_cast<std::uintptr_t>(one.data()) + 8};
  const std::array<Frame, 1> in_two = {reinterpret_cast<std::uintptr_t>(two.data()) + 8};
  EXPECT_NE(writer->stacks.intern(in_one, false), writer->stacks.intern(in_two, false));
}

TEST(MovedStacks, entries_are_found_whole_or_not_at_all_while_others_take_their_slots) {
  MovedStacks moved;
  // All stacks have the same slot of the cache.
  constexpr std::uint64_t hash = 77;
  const auto frames_of = [](std::uint32_t row) {
    std::array<Frame, 40> frames{};
    frames.fill(row);
    return frames;
  };
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint32_t i = 0; !stop.load(); ++i) {
      const std::uint32_t row = i % 2 + 1;
      moved.insert(hash, frames_of(row), false, row);
      if (i % 16 == 0) moved.retire(row, row + 1);
    }
  });
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    const std::uint32_t wanted = static_cast<std::uint32_t>(i % 2 + 1);
    const std::uint32_t row = moved.find(hash, frames_of(wanted), false);
    EXPECT_TRUE(row == 0 || row == wanted);
  }
  stop = true;
  writer.join();
  moved.insert(hash, frames_of(1), false, 1);
  EXPECT_EQ(moved.find(hash, frames_of(1), false), 1u);
  EXPECT_EQ(moved.find(hash, frames_of(1), true), 0u);
  moved.retire(1, 2);
  EXPECT_EQ(moved.find(hash, frames_of(1), false), 0u);
}

}  // namespace
}  // namespace cuwarden::ledger
