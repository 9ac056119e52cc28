// Functions, lines and inlined calls of real files, checked against what the programs themselves
// say about their addresses and lines.
#include "reporters/symbolizer.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "reporters/elf_symbols.hpp"

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

class Symbolised : public testing::TestWithParam<const char*> {};

TEST_P(Symbolised, an_inlined_call_is_two_frames_with_their_own_lines) {
  const std::string program = folder() + "/" + GetParam();
  const Call call = call_of(program);
  const auto frames = symbolise(program.c_str(), std::vector{call.address}).at(0);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].function.substr(0, 14), "fixture::inner");
  EXPECT_EQ(frames[0].line, call.inner_line);
  EXPECT_TRUE(frames[0].inlined);
  EXPECT_EQ(frames[1].function, "fixture::outer()");
  EXPECT_EQ(frames[1].line, call.outer_line);
  EXPECT_FALSE(frames[1].inlined);
  EXPECT_TRUE(frames[1].file.ends_with("symbol_fixture.cpp")) << frames[1].file;
}

INSTANTIATE_TEST_SUITE_P(Files, Symbolised,
                         testing::Values("symbol_fixture_pie", "symbol_fixture_fixed"));

TEST(Symbolise, without_debug_information_the_symbol_table_names_the_function) {
  const std::string program = folder() + "/symbol_fixture_nodebug";
  const auto frames = symbolise(program.c_str(), std::vector{call_of(program).address}).at(0);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].function, "fixture::outer()");
  EXPECT_EQ(frames[0].file, "");
  EXPECT_EQ(frames[0].line, 0);
}

TEST(Symbolise, a_stripped_program_gives_no_wrong_name) {
  const std::string program = folder() + "/symbol_fixture_stripped";
  const auto frames = symbolise(program.c_str(), std::vector{call_of(program).address}).at(0);
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
  const auto frames = symbolise(path.c_str(), addresses);
  EXPECT_EQ(frames[exported < hidden ? 0 : 1].at(0).function, "vendor_open");
  EXPECT_EQ(frames[exported < hidden ? 1 : 0].at(0).function, "");
  dlclose(library);
}

TEST(Symbolise, an_address_outside_of_the_file_has_no_name) {
  const std::string program = folder() + "/symbol_fixture_pie";
  const auto frames = symbolise(program.c_str(), std::vector<std::uint64_t>{1, 0x7fff00000000});
  EXPECT_EQ(frames.at(0).at(0).function, "");
  EXPECT_EQ(frames.at(1).at(0).function, "");
}

TEST(Symbolise, a_file_that_is_no_program_gives_frames_without_names) {
  const std::string path = std::filesystem::temp_directory_path() / "symbolise-not-a-program";
  for (const std::string& content : {std::string("no ELF file"), std::string("\177ELF\2\1\1", 7),
                                     "\177ELF\2\1\1" + std::string(57, '\377')}) {
    std::ofstream(path) << content;
    const auto frames = symbolise(path.c_str(), std::vector<std::uint64_t>{0x1000});
    EXPECT_EQ(frames.at(0).at(0).function, "");
    EXPECT_EQ(frames.at(0).at(0).line, 0);
  }
  std::filesystem::remove(path);
  EXPECT_EQ(symbolise("/nonexistent", std::vector<std::uint64_t>{1}).at(0).at(0).function, "");
}

TEST(Symbolise, a_pipe_in_place_of_the_debug_information_is_not_waited_for) {
  char place[] = "/tmp/symbolise-XXXXXX";
  ASSERT_NE(mkdtemp(place), nullptr);
  const std::string fixture = folder() + "/symbol_fixture_nodebug";
  const std::string program = std::string(place) + "/program";
  const std::string debug = std::string(place) + "/program.debug";
  std::ofstream(debug) << "its checksum goes into the program";
  const std::string link =
      OBJCOPY " --add-gnu-debuglink=" + debug + " '" + fixture + "' " + program;
  ASSERT_EQ(std::system(link.c_str()), 0);
  ASSERT_EQ(unlink(debug.c_str()), 0);
  ASSERT_EQ(mkfifo(debug.c_str(), 0600), 0);
  const std::uint64_t address = call_of(fixture).address;

  auto frames = std::async(std::launch::async,
                           [&] { return symbolise(program.c_str(), std::vector{address}).at(0); });
  const bool waits = frames.wait_for(std::chrono::seconds(20)) != std::future_status::ready;
  EXPECT_FALSE(waits);
  if (waits) {  // let it go, or the test would wait too
    const int writer = open(debug.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    frames.wait();
    close(writer);
  }
  EXPECT_EQ(frames.get().at(0).function, "fixture::outer()");
  std::filesystem::remove_all(place);
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
