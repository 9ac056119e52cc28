// A line on the terminal about work that takes longer than a second: what is done, how far it is,
// and how long it still takes.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace cuwarden {

// Shows the progress of one piece of work while the object lives. The line appears on standard
// error once the work has taken a second, if standard error is a terminal and TERM is not "dumb".
// Other output of the command (command_output.hpp) takes the line away first. Objects may be
// nested: the innermost one is shown, and the outer one again after it. The command has one thread.
class Progress {
 public:
  // `what`: the work, such as "reading reports". `all`: number of its parts; 0: unknown.
  Progress(std::string what, std::size_t all);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Takes the line away.
  ~Progress();
  // To be called whenever `done` parts of the work are done. Draws the line anew at most five times
  // a second.
  void done(std::size_t done);

 private:
  using Clock = std::chrono::steady_clock;
  const std::string what_;         // the work in words
  const std::size_t all_;          // number of parts of the work; 0: unknown
  const Clock::time_point begun_;  // moment at which the work began
  Clock::time_point drawn_;        // moment at which the line was drawn last
};

// Returns the text of a progress line: "reading reports: 231 of 1,000, about 12 s left". `all`: 0:
// unknown. The time that is left is told once a part is done.
std::string progress_line(const std::string& what, std::size_t done, std::size_t all,
                          std::chrono::nanoseconds taken);

// Forbids the line of progress from now on. To be called before the command writes much to standard
// output without print(), since the line and the output may share a terminal.
void forbid_progress() noexcept;

// Takes the line of a progress away, if one is shown. Called before the command writes something
// else. May be called by a signal handler.
void hide_progress() noexcept;

}  // namespace cuwarden
