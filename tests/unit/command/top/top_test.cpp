// `top`: stacks that keep growing are told from those of a program's start, and columns never
// touch.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/unit/reporters/fake_ledger.hpp"
#include "tools/cuwarden/top/once_text.hpp"
#include "tools/cuwarden/top/recent_rates.hpp"
#include "tools/cuwarden/top/top_answer.hpp"
#include "tools/cuwarden/top/top_growth.hpp"
#include "tools/cuwarden/top/top_sample.hpp"

namespace cuwarden {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

// A ledger with one stack that allocates 1 MiB each second from the process's start on.
struct GrowingLedger : test::FakeLedger {
  GrowingLedger() {
    process.pid = 17;
    process.program = "/home/u/train";
    process.start_monotonic_ns = 1000 * second_ns;
    group = add_group(add_stack({0x1000}), {1}, Kind::device, {0});
    ledger::SeriesView device;
    device.kind = Kind::device;
    device.device = {0};
    series.push_back(device);
  }
  std::uint64_t after(std::uint64_t seconds) {
    for (; grown < seconds; ++grown)
      add_record(group, (grown + 1) << 20, 1 << 20, grown * second_ns);
    return process.start_monotonic_ns + seconds * second_ns;
  }
  GroupId group;
  std::uint64_t grown = 0;
};

TEST(GrowingGroups, a_program_that_starts_is_not_said_to_keep_growing) {
  GrowingLedger ledger;
  for (const std::uint64_t seconds : {5u, 10u, 59u}) {
    const std::uint64_t now = ledger.after(seconds);
    GrowingGroups growing;
    growing.look(ledger.reader(), now);
    EXPECT_TRUE(growing.empty()) << seconds;
  }
}

TEST(GrowingGroups, a_stack_that_has_grown_for_a_minute_keeps_growing) {
  GrowingLedger ledger;
  const std::uint64_t now = ledger.after(90);
  GrowingGroups growing;
  growing.look(ledger.reader(), now);
  const auto rate = growing.rate_of(ledger.group.value);
  ASSERT_TRUE(rate);
  EXPECT_NEAR(static_cast<double>(rate->bytes_per_minute), 60.0 * (1 << 20), 3.0 * (1 << 20));
}

TEST(GrowingGroups, a_stack_grows_by_steps_if_the_program_marks_them) {
  GrowingLedger ledger;
  const std::uint64_t now = ledger.after(90);
  for (std::uint64_t step = 1; step <= 9; ++step)
    ledger.steps.push_back({step, step * 10 * second_ns, {}, 0});
  ledger.process.steps = 8;
  GrowingGroups growing;
  growing.look(ledger.reader(), now);
  const auto rate = growing.rate_of(ledger.group.value);
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->first_step, 0u);
  ASSERT_TRUE(rate->bytes_per_step);
  EXPECT_NEAR(static_cast<double>(*rate->bytes_per_step), 10.0 * (1 << 20), 2.0 * (1 << 20));
}

TEST(GrowingGroups, a_stack_that_is_new_in_an_old_program_does_not_keep_growing) {
  GrowingLedger ledger;
  const GroupId fresh = ledger.add_group(ledger.add_stack({0x2000}), {1}, Kind::device, {0});
  const std::uint64_t now = ledger.after(90);
  for (std::uint64_t i = 0; i < 20; ++i) ledger.add_record(fresh, i + 1, 512, (70 + i) * second_ns);
  GrowingGroups growing;
  growing.look(ledger.reader(), now);
  EXPECT_TRUE(growing.rate_of(ledger.group.value));
  EXPECT_FALSE(growing.rate_of(fresh.value));
}

struct View {
  explicit View(GrowingLedger& from) : ledger(from), reader(from.reader()) {}
  void sample(std::uint64_t now_ns) {
    Sample taken = take_sample(reader);
    taken.time_ns = now_ns;
    recent.add(taken);
    growing.look(reader, now_ns);
  }
  WatchedProcess process() const { return {17, &reader, &recent, &growing}; }
  // `columns`: letters of a line; 0: any number.
  std::string text(std::size_t columns = 0) const {
    TopAnswer answer;
    add_process(process(), answer);
    for (const GroupSample& group : groups_by_bytes(recent)) {
      answer.stacks.push_back(stack_row(process(), group));
      answer.stacks.back().api = "cudaMalloc";
      answer.stacks.back().where = "train.cu:7 in train()";
    }
    ViewForm form;
    form.columns = columns;
    return process_view(answer, form);
  }
  std::string list() const {
    TopAnswer answer;
    add_process(process(), answer);
    return processes_view(answer, {});
  }
  GrowingLedger& ledger;
  ledger::Reader reader;
  Recent recent;
  GrowingGroups growing;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Returns the words of a row that begins with a number; each word is a column.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(TopView, a_device_that_fills_up_says_how_long_its_free_memory_lasts) {
  GrowingLedger ledger;
  ledger::DeviceView device;
  device.ordinal = {0};
  device.name = "a GPU";
  device.at = ledger::ReadingAt::last_call;
  device.total_bytes = std::uint64_t{1} << 30;
  device.free_bytes = std::uint64_t{600} << 20;
  ledger.devices.push_back(device);
  View view(ledger);
  view.sample(ledger.after(90));
  TopAnswer answer;
  add_process(view.process(), answer);
  ASSERT_EQ(answer.devices.size(), 1u);
  ASSERT_TRUE(answer.devices[0].minutes_left);
  EXPECT_NEAR(static_cast<double>(*answer.devices[0].minutes_left), 10, 1);
  EXPECT_FALSE(answer.devices[0].steps_left);
  EXPECT_NE(view.text().find("GPU 0 FILLS UP: full after about "), std::string::npos);
}

TEST(TopView, growth_has_one_unit) {
  GrowingLedger ledger;
  View view(ledger);
  view.sample(ledger.after(80));
  view.sample(ledger.after(90));
  const std::string text = view.text();
  EXPECT_NE(text.find("1 stack has grown for more than a minute, by "), text.npos) << text;
  EXPECT_NE(text.find("[grows "), text.npos) << text;
  EXPECT_NE(text.find("+60.0 MiB/min"), text.npos) << text;
  EXPECT_EQ(text.find("iB/s"), text.npos) << text;
  EXPECT_NE(view.list().find("+60.0 MiB/min"), text.npos) << view.list();
}

TEST(TopView, lines_fit_into_the_columns_of_the_terminal) {
  GrowingLedger ledger;
  View view(ledger);
  view.sample(ledger.after(80));
  view.sample(ledger.after(90));
  EXPECT_NE(view.text().find("cudaMalloc"), std::string::npos) << view.text();
  const std::string text = view.text(60);
  for (const std::string& line : lines_of(text)) EXPECT_LE(line.size(), 60u) << line;
  // The line of code matters more than the call.
  EXPECT_EQ(text.find("cudaMalloc"), text.npos) << text;
  EXPECT_NE(text.find("train.cu:7 in train()"), text.npos) << text;
}

TEST(TopView, columns_never_touch) {
  GrowingLedger ledger;
  View view(ledger);
  view.sample(ledger.after(80));
  // The largest numbers that occur: counts of ten digits, gibibytes a second.
  ledger::GroupView& group = ledger.groups[0];
  group.live_count = 9'876'543'210;
  group.allocations = 987'654'321'098;
  group.live_bytes = 1023ull << 40;
  view.sample(ledger.after(80) + second_ns);
  const auto rows = lines_of(view.text());
  const auto row = std::ranges::find_if(
      rows, [](const std::string& line) { return line.find("/min  ") != line.npos; });
  ASSERT_NE(row, rows.end()) << view.text();
  const auto words = words_of(*row);
  ASSERT_GE(words.size(), 5u) << *row;
  EXPECT_EQ(words[1], "TiB") << *row;
  EXPECT_EQ(words[2], "9,876,543,210") << *row;
  EXPECT_TRUE(words[3].starts_with('+')) << *row;
  EXPECT_TRUE(words[4].ends_with("/min")) << *row;
  EXPECT_NE(row->find("train.cu:7"), row->npos) << *row;
  const auto list = lines_of(view.list());
  EXPECT_EQ(words_of(list.back())[0], "17") << list.back();
  EXPECT_NE(list.back().find(" train"), std::string::npos) << list.back();
}

}  // namespace
}  // namespace cuwarden
