// Functions, lines and inlined calls of real files, compared with the addresses and lines that the
// programs themselves print.
#include "reporters/symbols/symbolizer.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "reporters/symbols/elf_symbols.hpp"
#include "tests/comes_about.hpp"

extern "C" void backtrace_qsort(void* base, std::size_t count, std::size_t bytes,
                                int (*compare)(const void*, const void*));

namespace cuwarden {
namespace {

struct Call {
  std::uint64_t address = 0;
  int inner_line = 0, outer_line = 0;
};

Call call_of(const std::string& program) {
  Call call;
  FILE* output = popen(program.c_str(), "r");
  unsigned long long address = 0;
  EXPECT_EQ(std::fscanf(output, "%llu %d %d", &address, &call.inner_line, &call.outer_line), 3);
  pclose(output);
  call.address = address;
  return call;
}

std::string folder() { return SYMBOL_FIXTURES; }

std::vector<std::vector<SymbolisedFrame>> symbolised(const char* path,
                                                     const std::vector<std::uint64_t>& sorted) {
  SymbolBudget unbound;
  Symbolised result = symbolise(path, sorted, unbound);
  EXPECT_FALSE(result.lines_are_missing || result.names_are_missing);
  return std::move(result.frames);
}

class SymbolisedFile : public testing::TestWithParam<const char*> {};

TEST_P(SymbolisedFile, an_inlined_call_is_two_frames_with_their_own_lines) {
  const std::string program = folder() + "/" + GetParam();
  const Call call = call_of(program);
  const auto frames = symbolised(program.c_str(), std::vector{call.address}).at(0);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].function.substr(0, 14), "fixture::inner");
  EXPECT_EQ(frames[0].line, call.inner_line);
  EXPECT_TRUE(frames[0].inlined);
  EXPECT_EQ(frames[1].function, "fixture::outer()");
  EXPECT_EQ(frames[1].line, call.outer_line);
  EXPECT_FALSE(frames[1].inlined);
  EXPECT_TRUE(frames[1].file.ends_with("symbol_fixture.cpp")) << frames[1].file;
}

INSTANTIATE_TEST_SUITE_P(Files, SymbolisedFile,
                         testing::Values("symbol_fixture_pie", "symbol_fixture_fixed"));

TEST(Symbolise, without_debug_information_the_symbol_table_names_the_function) {
  const std::string program = folder() + "/symbol_fixture_nodebug";
  const auto frames = symbolised(program.c_str(), std::vector{call_of(program).address}).at(0);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].function, "fixture::outer()");
  EXPECT_EQ(frames[0].file, "");
  EXPECT_EQ(frames[0].line, 0);
}

TEST(Symbolise, without_time_nothing_is_named_and_the_result_says_so) {
  const std::string program = folder() + "/symbol_fixture_pie";
  SymbolBudget none(std::chrono::nanoseconds{0});
  const std::vector<std::uint64_t> addresses{call_of(program).address};
  const Symbolised result = symbolise(program.c_str(), addresses, none);
  EXPECT_EQ(result.frames.at(0).at(0).function, "");
  EXPECT_TRUE(result.lines_are_missing);
  EXPECT_TRUE(result.names_are_missing);
}

TEST(Symbolise, enough_time_gives_lines_and_says_nothing) {
  const std::string program = folder() + "/symbol_fixture_pie";
  SymbolBudget minutes(std::chrono::minutes{10});
  const std::vector<std::uint64_t> addresses{call_of(program).address};
  const Symbolised result = symbolise(program.c_str(), addresses, minutes);
  EXPECT_GT(result.frames.at(0).at(0).line, 0);
  EXPECT_FALSE(result.lines_are_missing || result.names_are_missing);
}

TEST(SymbolBudget, more_memory_than_could_be_filled_in_time_is_not_given) {
  SymbolBudget one_second(std::chrono::milliseconds{1333});
  EXPECT_TRUE(one_second.take_memory(10 << 20));
  EXPECT_FALSE(one_second.take_memory(100 << 20));
  EXPECT_TRUE(one_second.has_time_for_lines());
  SymbolBudget minutes(std::chrono::minutes{10});
  EXPECT_TRUE(minutes.take_memory(200 << 20));
  EXPECT_FALSE(minutes.take_memory(100 << 20));
  SymbolBudget unbound;
  EXPECT_TRUE(unbound.take_memory(std::size_t{1} << 40));
}

TEST(BacktraceSort, equal_elements_are_sorted_as_fast_as_others) {
  int (*compare)(const void*, const void*) = [](const void* left, const void* right) {
    const int a = *static_cast<const int*>(left), b = *static_cast<const int*>(right);
    return (a > b) - (a < b);
  };
  for (const int different : {1, 2, 1000, 200'000}) {
    std::vector<int> values(200'000);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<int>(i * 7919 % static_cast<std::size_t>(different));
    std::vector<int> expected = values;
    std::qsort(expected.data(), expected.size(), sizeof(int), compare);
    backtrace_qsort(values.data(), values.size(), sizeof(int), compare);
    EXPECT_EQ(values, expected);
  }
  int few[] = {2, 1};
  backtrace_qsort(few, 0, sizeof(int), compare);
  backtrace_qsort(few, 1, sizeof(int), compare);
  EXPECT_EQ(few[0], 2);
  backtrace_qsort(few, 2, sizeof(int), compare);
  EXPECT_EQ(few[0], 1);
}

TEST(Symbolise, a_stripped_program_gives_no_wrong_name) {
  const std::string program = folder() + "/symbol_fixture_stripped";
  const auto frames = symbolised(program.c_str(), std::vector{call_of(program).address}).at(0);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].function, "");
}

TEST(Symbolise, a_stripped_library_gives_its_exported_functions_and_no_other) {
  const std::string path = folder() + "/libvendor_fixture.so";
  void* library = dlopen(path.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto open =
      reinterpret_cast<std::uint64_t (*)(std::uint64_t*)>(dlsym(library, "vendor_open"));
  link_map* map = nullptr;
  ASSERT_EQ(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
  std::uint64_t exported = 0;
  const std::uint64_t hidden = open(&exported) - map->l_addr;
  exported -= map->l_addr;

  const std::vector<std::uint64_t> addresses{std::min(hidden, exported),
                                             std::max(hidden, exported)};
  const auto frames = symbolised(path.c_str(), addresses);
  EXPECT_EQ(frames[exported < hidden ? 0 : 1].at(0).function, "vendor_open");
  EXPECT_EQ(frames[exported < hidden ? 1 : 0].at(0).function, "");
  dlclose(library);
}

TEST(Symbolise, an_address_outside_of_the_file_has_no_name) {
  const std::string program = folder() + "/symbol_fixture_pie";
  const auto frames = symbolised(program.c_str(), std::vector<std::uint64_t>{1, 0x7fff00000000});
  EXPECT_EQ(frames.at(0).at(0).function, "");
  EXPECT_EQ(frames.at(1).at(0).function, "");
}

TEST(Symbolise, a_file_that_is_no_program_gives_frames_without_names) {
  const std::string path = std::filesystem::temp_directory_path() / "symbolise-not-a-program";
  for (const std::string& content : {std::string("no ELF file"), std::string("\177ELF\2\1\1", 7),
                                     "\177ELF\2\1\1" + std::string(57, '\377')}) {
    std::ofstream(path) << content;
    const auto frames = symbolised(path.c_str(), std::vector<std::uint64_t>{0x1000});
    EXPECT_EQ(frames.at(0).at(0).function, "");
    EXPECT_EQ(frames.at(0).at(0).line, 0);
  }
  std::filesystem::remove(path);
  EXPECT_EQ(symbolised("/nonexistent", std::vector<std::uint64_t>{1}).at(0).at(0).function, "");
}

TEST(Symbolise, a_pipe_in_place_of_the_debug_information_is_not_waited_for) {
  char own_folder[] = "/tmp/symbolise-XXXXXX";
  ASSERT_NE(mkdtemp(own_folder), nullptr);
  const std::string fixture = folder() + "/symbol_fixture_nodebug";
  const std::string program = std::string(own_folder) + "/program";
  const std::string debug = std::string(own_folder) + "/program.debug";
  std::ofstream(debug) << "its checksum goes into the program";
  const std::string link =
      OBJCOPY " --add-gnu-debuglink=" + debug + " '" + fixture + "' " + program;
  ASSERT_EQ(std::system(link.c_str()), 0);
  ASSERT_EQ(unlink(debug.c_str()), 0);
  ASSERT_EQ(mkfifo(debug.c_str(), 0600), 0);
  const std::uint64_t address = call_of(fixture).address;

  auto frames = std::async(std::launch::async,
                           [&] { return symbolised(program.c_str(), std::vector{address}).at(0); });
  const bool waits = !comes_about(
      [&] { return frames.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_FALSE(waits);
  if (waits) {  // releases the thread, for which the test would wait otherwise
    const int writer = open(debug.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    frames.wait();
    close(writer);
  }
  EXPECT_EQ(frames.get().at(0).function, "fixture::outer()");
  std::filesystem::remove_all(own_folder);
}

TEST(CheckFile, the_build_id_tells_whether_a_file_changed) {
  const std::string program = folder() + "/symbol_fixture_pie";
  const auto file = ElfFile::open(program.c_str());
  ASSERT_TRUE(file);
  auto build_id = file->build_id();
  ASSERT_EQ(build_id.size(), 20u);
  EXPECT_EQ(check_file(program.c_str(), build_id), FileState::readable);
  EXPECT_EQ(check_file(program.c_str(), {}), FileState::readable);
  build_id[3] ^= 1;
  EXPECT_EQ(check_file(program.c_str(), build_id), FileState::changed);
  EXPECT_EQ(check_file("/nonexistent", build_id), FileState::missing);
}

}  // namespace
}  // namespace cuwarden
