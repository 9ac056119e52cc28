#include "tools/cuwarden/output/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

// True while a line of progress is on the terminal. A signal handler reads it.
std::atomic<bool> is_shown = false;
bool is_forbidden = false;  // true after forbid_progress()

// Longest silence that needs no line of progress, in nanoseconds.
constexpr std::uint64_t unnoticed_ns = 1'000'000'000;
// True if the terminal has got output since the last piece of work began. A signal handler sets it.
std::atomic<bool> has_output = true;
// Time at which the present silence began, in nanoseconds: the command has worked since then, but
// the terminal has got nothing.
std::uint64_t silent_since_ns = 0;
// Time at which the last piece of work was still done, in nanoseconds; 0: none has begun.
std::uint64_t worked_until_ns = 0;

// Writes controls or a line to the terminal. A failure is ignored, since the line is not needed.
void write_to_terminal(std::string_view text) noexcept {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

bool is_on_terminal() {
  const char* const terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

// Takes the line of progress away, if one is shown.
void take_away() noexcept {
  if (!is_shown.exchange(false)) return;
  has_output = true;
  write_to_terminal("\r\033[K");
}

std::size_t columns_of_terminal() {
  constexpr std::size_t usual = 80;
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : usual;
}

}  // namespace

std::string progress_line(const std::string& what, std::size_t done, std::size_t all,
                          std::chrono::nanoseconds taken, Progress::Unit unit) {
  const auto amount = [&](std::size_t parts) {
    return unit == Progress::Unit::bytes ? human_bytes(parts) : human_count(parts);
  };
  std::string line = what + ": " + amount(done);
  if (all == 0) return line + " so far";
  line += " of " + amount(all);
  // The beginning of a piece of work says little about its rest.
  if (done == 0 || done >= all || taken < std::chrono::milliseconds(500)) return line;
  const double left = static_cast<double>(taken.count()) / static_cast<double>(done) *
                      static_cast<double>(all - done) / 1e9;
  const auto seconds = static_cast<std::uint64_t>(std::llround(left));
  constexpr std::uint64_t second_ns = 1'000'000'000;
  if (seconds < 60) return line + ", about " + std::to_string(seconds) + " s left";
  return line + ", about " + human_time(seconds * second_ns) + " left";
}

Progress::Progress(std::string what, std::size_t all, Unit unit, Clock& clock)
    : what_(std::move(what)), all_(all), unit_(unit), clock_(clock), begun_ns_(clock.now_ns()) {
  // A silence goes on from one piece of work to the next, unless the command waits between them.
  const bool goes_on = begun_ns_ >= worked_until_ns && begun_ns_ - worked_until_ns < unnoticed_ns;
  if (has_output.exchange(false) || is_shown || !goes_on) silent_since_ns = begun_ns_;
  worked_until_ns = begun_ns_;
}

Progress::~Progress() {
  worked_until_ns = clock_.now_ns();
  take_away();
}

void Progress::done(std::size_t done) {
  constexpr std::uint64_t pause_ns = 200'000'000;
  const std::uint64_t now_ns = clock_.now_ns(), taken_ns = now_ns - begun_ns_;
  worked_until_ns = now_ns;
  if (is_forbidden || now_ns - std::min(begun_ns_, silent_since_ns) < unnoticed_ns ||
      now_ns - drawn_ns_ < pause_ns || !is_on_terminal())
    return;
  drawn_ns_ = now_ns;
  const std::string line =
      progress_line(what_, done, all_, std::chrono::nanoseconds(taken_ns), unit_);
  // Set first: a signal that ends the command may come as soon as the line is written.
  is_shown = true;
  // A line that fills the terminal to its last column would begin another one.
  write_to_terminal("\r\033[K" + cut(printable(line), columns_of_terminal() - 1));
}

ToldProgress::ToldProgress(std::string what, Progress::Unit unit, Clock& clock)
    : what_(std::move(what)), unit_(unit), clock_(clock) {}

void ToldProgress::operator()(std::size_t done, std::size_t all) {
  if (!progress_) progress_.emplace(what_, all, unit_, clock_);
  progress_->done(done);
}

void StagedProgress::done(const char* what, std::size_t done, std::size_t all) {
  if (what != what_) progress_.emplace(what, all, Progress::Unit::things, clock_);
  what_ = what;
  progress_->done(done);
}

void forbid_progress() noexcept { is_forbidden = true; }

void hide_progress() noexcept {
  has_output = true;
  take_away();
}

}  // namespace cuwarden
