// The line about work that takes longer than a second.
#include "tools/cuwarden/output/progress.hpp"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "reporters/model/row_progress.hpp"
#include "tests/unit/manual_clock.hpp"
#include "tools/cuwarden/output/command_output.hpp"

namespace cuwarden {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t second_ns = 1'000'000'000;

TEST(ProgressLine, says_how_far_the_work_is_and_how_long_it_still_takes) {
  EXPECT_EQ(progress_line("reading reports", 250, 1000, seconds(4)),
            "reading reports: 250 of 1,000, about 12 s left");
  EXPECT_EQ(progress_line("reading reports", 1, 1000, seconds(1)),
            "reading reports: 1 of 1,000, about 16 min 39 s left");
  EXPECT_EQ(progress_line("reading reports", 0, 3, seconds(9)), "reading reports: 0 of 3");
  EXPECT_EQ(progress_line("reading reports", 3, 3, seconds(9)), "reading reports: 3 of 3");
  EXPECT_EQ(progress_line("reading reports", 7, 0, seconds(9)), "reading reports: 7 so far");
}

TEST(ProgressLine, tells_bytes_in_units_that_people_read) {
  EXPECT_EQ(
      progress_line("reading ci.json", 25 << 20, 100 << 20, seconds(4), Progress::Unit::bytes),
      "reading ci.json: 25.0 MiB of 100.0 MiB, about 12 s left");
}

// Standard error of this process while the object lives is a terminal. Returns what was written.
class TerminalAsStandardError {
 public:
  TerminalAsStandardError() {
    setenv("TERM", "xterm", 1);
    EXPECT_EQ(openpty(&reader_, &terminal_, nullptr, nullptr, nullptr), 0);
    before_ = dup(STDERR_FILENO);
    dup2(terminal_, STDERR_FILENO);
  }
  ~TerminalAsStandardError() {
    restore();
    close(reader_);
  }
  TerminalAsStandardError(const TerminalAsStandardError&) = delete;
  TerminalAsStandardError& operator=(const TerminalAsStandardError&) = delete;

  std::string written() {
    // The mark ends the reading, also if nothing else was written.
    EXPECT_EQ(write(terminal_, "\n", 1), 1);
    std::string text;
    char byte = 0;
    while (read(reader_, &byte, 1) == 1 && byte != '\n') text += byte;
    restore();
    return text;
  }

 private:
  void restore() {
    if (before_ < 0) return;
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(terminal_);
    before_ = -1;
  }
  int reader_ = -1, terminal_ = -1, before_ = -1;
};

TEST(ProgressOnATerminal, is_shown_after_a_second_and_taken_away_at_the_end) {
  TerminalAsStandardError terminal;
  ManualClock clock;
  {
    Progress progress("merging", 4, Progress::Unit::things, clock);
    clock.advance(second_ns - 1);
    progress.done(1);
    clock.advance(1);
    progress.done(2);
  }
  EXPECT_EQ(terminal.written(), "\r\033[Kmerging: 2 of 4, about 1 s left\r\033[K\r");
}

TEST(ProgressOnATerminal, is_drawn_every_fifth_of_a_second_at_most) {
  TerminalAsStandardError terminal;
  ManualClock clock;
  {
    Progress progress("merging", 4, Progress::Unit::things, clock);
    clock.advance(second_ns);
    progress.done(1);
    clock.advance(second_ns / 5 - 1);
    progress.done(2);
    clock.advance(1);
    progress.done(3);
  }
  EXPECT_EQ(terminal.written(),
            "\r\033[Kmerging: 1 of 4, about 3 s left"
            "\r\033[Kmerging: 3 of 4, about 0 s left\r\033[K\r");
}

TEST(ProgressOnATerminal, makes_way_for_other_output) {
  TerminalAsStandardError terminal;
  ManualClock clock;
  Progress progress("merging", 4, Progress::Unit::things, clock);
  clock.advance(second_ns);
  progress.done(2);
  print_line(STDERR_FILENO, "a line");
  const std::string written = terminal.written();
  EXPECT_NE(written.find(" left\r\033[Ka line"), std::string::npos) << written;
}

TEST(ProgressOnATerminal, is_shown_once_pieces_of_work_have_taken_a_second_together) {
  TerminalAsStandardError terminal;
  ManualClock clock;
  {
    Progress progress("reading", 4, Progress::Unit::things, clock);
    clock.advance(second_ns * 2 / 5);
    progress.done(3);
  }
  clock.advance(second_ns / 5);
  {
    Progress progress("merging", 4, Progress::Unit::things, clock);
    clock.advance(second_ns * 2 / 5);
    progress.done(2);
  }
  EXPECT_EQ(terminal.written(), "\r\033[Kmerging: 2 of 4\r\033[K\r");
}

TEST(ProgressOnATerminal, is_not_shown_early_after_a_wait_or_after_other_output) {
  TerminalAsStandardError terminal;
  ManualClock clock;
  const auto work = [&] {
    Progress progress("reading", 4, Progress::Unit::things, clock);
    clock.advance(second_ns * 3 / 5);
    progress.done(3);
  };
  work();
  clock.advance(second_ns);
  work();
  hide_progress();  // as before other output
  work();
  EXPECT_EQ(terminal.written(), "\r");
}

TEST(ProgressOnATerminal, begins_anew_with_each_stage_of_the_work) {
  TerminalAsStandardError terminal;
  ManualClock clock;
  const char *const first = "reading", *const second = "writing";
  {
    StagedProgress progress(clock);
    progress.done(first, 0, 2);
    clock.advance(second_ns);
    progress.done(first, 1, 2);
    clock.advance(second_ns / 2);
    progress.done(second, 1, 3);
    clock.advance(second_ns / 2);
    progress.done(second, 2, 3);  // half a second after the stage began
  }
  EXPECT_EQ(terminal.written(), "\r\033[Kreading: 1 of 2, about 1 s left\r\033[K\r");
}

TEST(ProgressOnATerminal, begins_with_the_first_number_that_work_tells_of_its_parts) {
  TerminalAsStandardError terminal;
  ManualClock clock;
  {
    ToldProgress progress("merging", Progress::Unit::things, clock);
    clock.advance(second_ns);
    progress(0, 4);
    clock.advance(second_ns);
    progress(2, 4);
  }
  EXPECT_EQ(terminal.written(), "\r\033[Kmerging: 2 of 4, about 1 s left\r\033[K\r");
}

TEST(RowProgress, tells_the_average_of_all_passes_and_counts_those_that_were_not_needed) {
  std::vector<std::pair<std::size_t, std::size_t>> told;
  const auto tell = [&](std::size_t rows, std::size_t all) { told.emplace_back(rows, all); };
  RowProgress done(1024, 4, tell);
  for (int row = 0; row < 1024; ++row) done();
  done.reach(3);
  done.reach(2);
  for (int row = 0; row < 4096; ++row) done();
  const std::vector<std::pair<std::size_t, std::size_t>> expected = {
      {0, 1024},    {256, 1024},  {768, 1024},  {768, 1024},
      {1024, 1024}, {1024, 1024}, {1024, 1024}, {1024, 1024}};
  EXPECT_EQ(told, expected);
}

TEST(ProgressOnATerminal, is_not_shown_on_a_dumb_terminal) {
  TerminalAsStandardError terminal;
  setenv("TERM", "dumb", 1);
  ManualClock clock;
  Progress progress("merging", 4, Progress::Unit::things, clock);
  clock.advance(second_ns);
  progress.done(2);
  EXPECT_EQ(terminal.written(), "\r");
}

}  // namespace
}  // namespace cuwarden
