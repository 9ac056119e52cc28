// The table of modules: modules are noted when a stack contains them, and told apart when they are
// unloaded and loaded again.
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>

#include <filesystem>

#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"
#include "tests/unit/ledger/test_library.hpp"

namespace cuwarden::ledger {
namespace {

TEST_F(LedgerTest, a_stack_brings_its_modules_along) {
  const TestLibrary library;
  const std::array<Frame, 2> frames = {library.frame(), frame_in_program()};
  const StackId id = writer->stacks.intern(frames, false);
  const Reader read = reader();
  const std::uint64_t epoch = read.stack(id.value)->module_epoch;

  const auto module = read.module_at(frames[0], epoch);
  ASSERT_TRUE(module);
  EXPECT_EQ(module->path, CUWARDEN_TEST_MODULE);
  EXPECT_EQ(module->build_id.size(), 20u);
  EXPECT_EQ(module->unloaded_epoch, 0u);
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(frames[0]), &info);
  EXPECT_EQ(module->base, reinterpret_cast<std::uintptr_t>(info.dli_fbase));

  const auto program = read.module_at(frames[1], epoch);
  ASSERT_TRUE(program);
  EXPECT_EQ(program->path, std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_EQ(read.rows(RegionId::modules), 3u) << "only modules that occur in stacks";
}

TEST_F(LedgerTest, an_unloaded_modules_stacks_are_not_matched_again) {
  std::array<Frame, 2> frames{};
  StackId old, other;
  const std::array<Frame, 1> unaffected = {frame_in_program()};
  {
    const TestLibrary library;
    frames = {library.frame(), frame_in_program()};
    old = writer->stacks.intern(frames, false);
    other = writer->stacks.intern(unaffected, false);
    writer->stacks.modules_changed();  // nothing went away
    EXPECT_EQ(writer->stacks.intern(frames, false), old);
    EXPECT_EQ(writer->file.header().module_epoch.load(), 0u);
  }
  writer->stacks.modules_changed();
  EXPECT_EQ(writer->file.header().module_epoch.load(), 1u);
  EXPECT_NE(writer->stacks.intern(frames, false), old);
  EXPECT_EQ(writer->stacks.intern(unaffected, false), other);

  const Reader read = reader();
  const auto module = read.module_at(frames[0], read.stack(old.value)->module_epoch);
  ASSERT_TRUE(module) << "the old stack still knows what it ran through";
  EXPECT_EQ(module->unloaded_epoch, 1u);
  EXPECT_FALSE(read.module_at(frames[0], 1)) << "nothing is mapped there now";
}

TEST_F(LedgerTest, a_module_that_comes_back_gets_another_row_with_a_new_stack) {
  for (std::uint64_t round = 0; round < 5; ++round) {
    {
      const TestLibrary library;
      const std::array<Frame, 1> frames = {library.frame() + round};
      const StackId id = writer->stacks.intern(frames, false);
      const Reader read = reader();
      EXPECT_EQ(read.stack(id.value)->module_epoch, round);
      const auto module = read.module_at(frames[0], round);
      ASSERT_TRUE(module);
      EXPECT_EQ(module->loaded_epoch, round);
      { const TestLibrary second_reference; }
      writer->stacks.modules_changed();
      EXPECT_EQ(writer->file.header().module_epoch.load(), round) << "the module is still loaded";
    }
    writer->stacks.modules_changed();
    EXPECT_EQ(writer->file.header().module_epoch.load(), round + 1);
  }
}

TEST_F(LedgerTest, generated_code_keeps_its_addresses) {
  void* const code = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (Frame i = 0; i < 100; ++i) {
    const std::array<Frame, 2> frames = {reinterpret_cast<std::uintptr_t>(code) + i,
                                         frame_in_program()};
    EXPECT_NE(writer->stacks.intern(frames, false).value, 0u);
  }
  const Reader read = reader();
  EXPECT_EQ(read.rows(RegionId::modules), 2u);
  EXPECT_FALSE(read.module_at(reinterpret_cast<std::uintptr_t>(code), 0));
  // A module that is loaded after generated code was seen is still found.
  const TestLibrary library;
  const std::array<Frame, 2> frames = {reinterpret_cast<std::uintptr_t>(code), library.frame()};
  writer->stacks.intern(frames, false);
  EXPECT_TRUE(reader().module_at(library.frame(), 0));
  munmap(code, 4096);
}

}  // namespace
}  // namespace cuwarden::ledger
