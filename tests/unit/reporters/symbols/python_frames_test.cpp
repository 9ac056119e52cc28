// Python frames of a ledger in a report: their functions, files and lines.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "reporters/symbols/python_lines.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "tests/unit/reporters/fake_ledger.hpp"

namespace cuwarden {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

ledger::PythonCodeView code(const std::string& lines, std::uint32_t format) {
  ledger::PythonCodeView made;
  made.file = "train.py";
  made.function = "Trainer.step";
  made.first_line = 10;
  made.lines = lines;
  made.lines_format = format;
  return made;
}

// Returns the lines of the instructions from 0 on; 0 stands for none.
std::vector<std::uint32_t> lines_of(const ledger::PythonCodeView& function, std::uint32_t count) {
  std::vector<std::uint32_t> lines;
  for (std::uint32_t i = 0; i < count; ++i) lines.push_back(python_line(function, i));
  return lines;
}

using Lines = std::vector<std::uint32_t>;

TEST(PythonLines, pairs_of_steps_as_python_3_9_writes_them) {
  // 4 bytes of line 10; then line 12; after 2 bytes more, line 11.
  const std::string table = bytes({4, 2, 2, -1});
  EXPECT_EQ(lines_of(code(table, 0), 5), (Lines{10, 10, 12, 11, 11}));
  // A step of more than 127 lines takes two pairs.
  const std::string far = bytes({2, 127, 0, 100});
  EXPECT_EQ(lines_of(code(far, 0), 2), (Lines{10, 237}));
}

TEST(PythonLines, ranges_as_python_3_10_writes_them) {
  // 4 bytes of line 10, 2 without a line, 2 of line 13.
  const std::string table = bytes({4, 0, 2, -128, 2, 3});
  EXPECT_EQ(lines_of(code(table, 1), 5), (Lines{10, 10, 0, 13, 0}));
}

TEST(PythonLines, locations_as_python_3_11_writes_them) {
  const auto entry = [](int form, int instructions) {
    return 0x80 | form << 3 | (instructions - 1);
  };
  const std::string table = bytes({
      entry(0, 2), 0x11,                   // columns only: line 10
      entry(11, 1), 4, 9,                  // one line further: line 11
      entry(13, 1), 0x03,                  // one line back, without columns: line 10
      entry(15, 2),                        // no line
      entry(14, 3), 0x40 | 8, 2, 0, 1, 1,  // (8 | 2 << 6) / 2 = 68 lines further, with an end: 78
  });
  EXPECT_EQ(lines_of(code(table, 2), 10), (Lines{10, 10, 11, 10, 0, 0, 78, 78, 78, 0}));
}

TEST(PythonLines, damaged_tables_give_some_line_or_none) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string table(random() % 40, '\0');
    for (char& byte : table) byte = static_cast<char>(random());
    for (std::uint32_t format = 0; format < 4; ++format)
      python_line(code(table, format), static_cast<std::uint32_t>(random() % 100));
  }
}

TEST(PythonFrames, rows_have_function_file_and_line_but_no_module_or_address) {
  test::FakeLedger ledger;
  const std::string table = bytes({0x80 | 11 << 3 | 1, 0, 0});
  ledger.python_codes.push_back(code(table, 2));
  const StackId stack =
      ledger.add_stack({0x5000, ledger::python_frame(1, 1), ledger::python_frame(7, 1), 0x6000});
  const ledger::Reader reader = ledger.reader();
  CallFrames frames(reader);
  frames.add_stack(stack);
  std::vector<std::string> reasons;
  frames.name_all(nullptr, reasons);
  std::vector<model::Frame> rows;
  frames.put_frames([&](const model::Frame& row) { rows.push_back(row); });
  ASSERT_EQ(rows.size(), 4u);
  std::vector<model::Frame> in_order;
  for (const std::uint32_t id : frames.frame_ids(reader.stack(stack.value).value()))
    in_order.push_back(rows.at(id - 1));
  ASSERT_EQ(in_order.size(), 4u);
  EXPECT_EQ(in_order[0].language, "native");
  EXPECT_EQ(in_order[1].language, "python");
  EXPECT_EQ(in_order[1].function, "Trainer.step");
  EXPECT_EQ(in_order[1].file, "train.py");
  EXPECT_EQ(in_order[1].line, 11u);
  EXPECT_FALSE(in_order[1].module || in_order[1].offset || in_order[1].address);
  // A function that the ledger lacks, as in a damaged one.
  EXPECT_EQ(in_order[2].language, "python");
  EXPECT_FALSE(in_order[2].function || in_order[2].line);
  EXPECT_EQ(in_order[3].address, "0x6000");
}

}  // namespace
}  // namespace cuwarden
