// `top`: the pages of the live view fit screens of all sizes.
#include <gtest/gtest.h>

#include <algorithm>

#include "reporters/words/printable.hpp"
#include "tests/unit/command/top/live_data_fixture.hpp"

namespace cuwarden {
namespace {

using Name = Key::Name;
using Texts = std::vector<std::string>;
using Live = test::LiveViewUnderTest;
using test::mebibyte;

std::size_t letters_of(const std::string& line) {
  return static_cast<std::size_t>(std::ranges::count_if(line, starts_letter));
}

bool is_ascii(const std::string& text) {
  return std::ranges::all_of(text, [](char byte) { return static_cast<signed char>(byte) >= 0; });
}

// A live view whose data have all that the pages can show.
Live full_live() {
  Live live;
  LiveProcess& process = live.data.processes[1];
  process.row.program = "/home/u/grün";
  process.row.rank = 7;
  process.row.failures = 1;
  process.row.rescues = 2;
  DeviceRow device;
  device.device = 0;
  device.name = "a GPU";
  device.total_bytes = 16 * mebibyte;
  device.used_bytes = 8 * mebibyte;
  device.minutes_left = 5;
  process.devices.push_back(device);
  WaitingRow waiting;
  waiting.kind = "device";
  waiting.device = 0;
  waiting.api = "cudaMalloc";
  waiting.bytes = 4 * mebibyte;
  waiting.rung = "wait";
  waiting.duration_ns = 12'000'000'000;
  waiting.where = "a.cpp:1 in load";
  process.waiting.push_back(waiting);
  live.data.accounts = {{0, {}, "live_device", 3 << 20}, {0, {}, "context", 5 << 20}};
  live.data.stacks[0].row.keeps_growing = true;
  live.data.stacks[0].row.keeps_growing_bytes_per_minute = mebibyte;
  live.data.stacks[1].location = "größe.cpp:2 in größe";
  live.data.whole_stack =
      StackLines{{"cuda.cpp:1 in cudaMalloc", "cuda.cpp:1 in cudaMalloc", "CUDA"},
                 {"/home/u/a.cpp:1 in load", "a.cpp:1 in load", "", true},
                 {"/home/u/a.cpp:9 in main", "a.cpp:9 in main", ""}};
  return live;
}

TEST(TopPages, every_page_fits_every_screen_and_shows_its_selection) {
  for (const int depth : {0, 1, 2, 3}) {
    for (const std::size_t columns : {1u, 2u, 20u, 33u, 60u, 80u, 110u, 200u}) {
      for (const std::size_t rows : {1u, 2u, 5u, 8u, 24u, 60u}) {
        for (const bool ascii : {false, true}) {
          Live live = full_live();
          live.screen = {columns, rows, false, ascii};
          for (int i = 0; i < std::min(depth, 2); ++i) live.open();
          if (depth == 3) live.type("h");
          const Texts lines = live.lines();
          EXPECT_EQ(lines.size(), rows);
          for (const std::string& line : lines) {
            EXPECT_LE(letters_of(line), std::max<std::size_t>(columns, 2)) << line;
            EXPECT_FALSE(acts_on_a_terminal(line)) << line;
            EXPECT_TRUE(!ascii || is_ascii(line)) << line;
          }
          if (depth < 2 && rows >= 5) {
            EXPECT_NE(live.selected(), "") << live.text();
          }
        }
      }
    }
  }
}

TEST(TopPages, twenty_columns_and_five_rows_show_what_matters_most) {
  Live live = full_live();
  live.screen.columns = 20;
  live.screen.rows = 5;
  EXPECT_EQ(live.lines(),
            (Texts{"cuwarden top: 3 pro…", "   PID   DEVICE* PR…", ">   12   3.0 MiB gr…",
                   "    13   2.0 MiB mi…", "q quit  h keys  Ent…"}));
  live.open();
  EXPECT_EQ(live.lines(), (Texts{"grün (pid 12) runni…", "     LIVE* WHERE", ">  4.0 MiB [grows] …",
                                 "   3.0 MiB größe.cp…", "q quit  h keys  Esc…"}));
}

TEST(TopPages, a_wide_list_has_all_columns_of_a_process) {
  Live live = full_live();
  live.screen.columns = 200;
  const Texts lines = live.lines();
  for (const char* const title : {"PID", "USER", "RANK", "GPU", "DEVICE*", "PINNED", "PEAK",
                                  "GROWTH", "ALLOCS/s", "RUNNING", "LAST 5 MIN", "STATE"})
    EXPECT_NE(lines[1].find(title), std::string::npos) << title;
  std::istringstream words(lines[2]);
  Texts shown;
  for (std::string word; words >> word;) shown.push_back(word);
  EXPECT_EQ(shown,
            (Texts{">",     "12",   "u", "7",       "0",       "3.0", "MiB",     "0", "B",
                   "6.0",   "MiB",  "0", "0.0",     "1",       "min", "30",      "s", "▁▁█",
                   "waits", "12.0", "s", "(wait),", "refused", "1,",  "rescued", "2", "grün"}))
      << lines[2];
}

TEST(TopPages, without_a_process_the_list_says_how_to_start_one) {
  Live live;
  live.data.processes.clear();
  EXPECT_EQ(live.lines()[0], "cuwarden top: 0 processes");
  EXPECT_EQ(live.lines()[2], "No process runs under cuwarden.");
  EXPECT_EQ(live.lines().size(), 24u);
}

TEST(TopPages, a_filter_that_hides_all_lines_says_so) {
  Live live;
  live.type("/nowhere");
  EXPECT_NE(live.text().find("No process has the text of the filter."), std::string::npos);
  live.press_key(Name::escape);
  live.open();
  live.type("/nowhere");
  EXPECT_NE(live.text().find("No stack has the text of the filter."), std::string::npos);
  live.data.stacks.clear();
  EXPECT_NE(live.text().find("nothing is live"), std::string::npos);
}

TEST(TopPages, ended_processes_are_counted_and_named_so) {
  Live live;
  live.data.processes[0].row.ended = true;
  EXPECT_EQ(live.lines()[0], "cuwarden top: 3 processes, 1 of them ended");
  EXPECT_NE(live.lines()[4].find("ended"), std::string::npos);
  live.press_key(Name::end);
  live.open();
  EXPECT_TRUE(live.lines()[0].starts_with("small (pid 11) has ended after 1 min 30 s"));
}

TEST(TopPages, a_process_shows_its_devices_kinds_waits_and_growth) {
  Live live = full_live();
  live.open();
  const Texts lines = live.lines();
  EXPECT_EQ(lines[0], "grün (pid 12) running for 1 min 30 s, rank 7, user u, refused 1, rescued 2");
  EXPECT_EQ(lines[1],
            "waits for memory: cudaMalloc of 4.0 MiB (GPU 0), rung wait for 12.0 s: a.cpp:1 in "
            "load");
  EXPECT_EQ(lines[2], "1 stack has grown for more than a minute, by 1.0 MiB/min");
  EXPECT_EQ(lines[3], "GPU 0 FILLS UP: full after about 5 min");
  EXPECT_EQ(lines[4], "GPU 0: a GPU, 8.0 MiB of 16.0 MiB in use [##########..........]");
  EXPECT_EQ(lines[5], "  live device memory 3.0 MiB · context 5.0 MiB");
  EXPECT_TRUE(lines[6].starts_with("KIND  "));
  EXPECT_TRUE(lines[7].starts_with("device memory (GPU 0) "));
  EXPECT_TRUE(lines[7].ends_with(" 3.0 MiB      3   6.0 MiB ▁█")) << lines[7];
}

TEST(TopPages, a_growing_stack_has_a_short_mark_where_there_is_little_room) {
  Live live = full_live();
  live.open();
  EXPECT_NE(live.selected().find(" [grows] a.cpp:1 in load"), std::string::npos);
  live.screen.columns = 140;
  EXPECT_NE(live.selected().find(" [grows 1.0 MiB/min] a.cpp:1 in load"), std::string::npos);
}

TEST(TopPages, the_keys_fit_eighty_columns) {
  Live live;
  live.screen.columns = 200;
  live.type("h");
  for (const std::string& line : live.lines()) EXPECT_LE(letters_of(line), 80u) << line;
}

TEST(TopPages, a_head_that_is_too_long_says_how_many_lines_are_hidden) {
  Live live = full_live();
  live.screen.rows = 9;
  live.open();
  const Texts lines = live.lines();
  EXPECT_EQ(lines[4], "  … 4 more lines on a higher terminal");
  EXPECT_NE(lines[5].find("LIVE*"), std::string::npos);
}

TEST(TopPages, a_call_stack_shows_all_frames_and_marks_the_users_one) {
  Live live = full_live();
  live.open();
  live.open();
  const Texts lines = live.lines();
  EXPECT_EQ(lines[3], "  cuda.cpp:1 in cudaMalloc  (CUDA)");
  EXPECT_EQ(lines[4], "→ /home/u/a.cpp:1 in load");
  EXPECT_EQ(lines[5], "  /home/u/a.cpp:9 in main");
  live.screen.columns = 20;
  EXPECT_EQ(live.lines()[4], "→ a.cpp:1 in load");
  live.screen.ascii = true;
  EXPECT_EQ(live.lines()[4], "-> a.cpp:1 in load");
  live.data.whole_stack.reset();
  EXPECT_EQ(live.lines()[3], "The names of the fra");
}

TEST(TopPages, a_long_call_stack_scrolls) {
  Live live = full_live();
  live.data.stacks[0].row.keeps_growing = false;
  for (int i = 0; i < 30; ++i)
    live.data.whole_stack->push_back({"f" + std::to_string(i), "f" + std::to_string(i), ""});
  live.open();
  live.open();
  live.screen.rows = 10;  // seven frames
  EXPECT_EQ(live.lines()[8], "  f3");
  live.press_key(Name::down);
  EXPECT_EQ(live.lines()[8], "  f4");
  live.press_key(Name::page_down);
  EXPECT_EQ(live.lines()[8], "  f10");
  live.press_key(Name::end);
  EXPECT_EQ(live.lines()[8], "  f29");
  live.press_key(Name::home);
  EXPECT_EQ(live.lines()[8], "  f3");
}

TEST(TopPages, only_own_colours_are_used_and_none_without_colour) {
  Live live = full_live();
  EXPECT_EQ(live.text().find('\033'), std::string::npos);
  live.screen.colour = true;
  const std::string text = live.text();
  EXPECT_NE(text.find(std::string(reverse_colour) + ">"), std::string::npos);
  EXPECT_FALSE(acts_on_a_terminal(std::string(reverse_colour).substr(1)));
  for (std::size_t at = text.find('\033'); at != text.npos; at = text.find('\033', at + 1))
    EXPECT_NE(leading_colour(std::string_view(text).substr(at)), 0u);
}

TEST(TopPages, names_of_the_stacks_that_are_drawn_are_asked_for) {
  Live live = full_live();
  EXPECT_TRUE(drawn_groups(live.state, live.data).empty());
  live.screen.rows = 5;  // two lines of the list
  live.open();
  live.lines();
  EXPECT_EQ(drawn_groups(live.state, live.data), (std::vector<std::uint32_t>{1, 2}));
  live.press_key(Name::end);
  live.lines();
  EXPECT_EQ(drawn_groups(live.state, live.data), (std::vector<std::uint32_t>{3, 4}));
  live.type("m");
  live.lines();
  EXPECT_TRUE(drawn_groups(live.state, live.data).empty());
}

}  // namespace
}  // namespace cuwarden
