// A line on the terminal about work that takes longer than a second: what is done, how far it is,
// and how long it still takes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime_hooks/core/clock.hpp"

namespace cuwarden {

// Shows the progress of one piece of work while the object lives. The line appears on standard
// error once the work has taken a second, if standard error is a terminal and TERM is set and not
// "dumb". Pieces of work that follow each other within a second count together until a line
// appears. Other output of the command (command_output.hpp) takes the line away first. Objects may
// be nested: the innermost one is shown, and the outer one again after it. The command has one
// thread.
class Progress {
 public:
  // Unit of the parts of the work: things that are counted, or bytes.
  enum class Unit : std::uint8_t { things, bytes };

  // `what`: words for the work, such as "reading reports". `all`: number of its parts; 0: unknown.
  // `unit`: unit in which the parts are counted. `clock`: tells how long the work takes.
  Progress(std::string what, std::size_t all, Unit unit = Unit::things,
           Clock& clock = system_clock);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Removes the line of progress from the terminal, if it is shown.
  ~Progress();
  // Draws the line of progress anew, but at most five times a second. To be called whenever a part
  // of the work is done. `done`: number of parts that are done so far.
  void done(std::size_t done);

 private:
  const std::string what_;        // words for the work, such as "reading reports"
  const std::size_t all_;         // number of parts of the work; 0: unknown
  const Unit unit_;               // unit in which the parts of the work are counted
  Clock& clock_;                  // tells how long the work takes
  const std::uint64_t begun_ns_;  // time of clock_ at which the work began, in nanoseconds
  // Time of clock_ at which the line of progress was drawn last, in nanoseconds; 0: never.
  std::uint64_t drawn_ns_ = 0;
};

// Shows the progress of one piece of work that tells the number of its parts itself. The object is
// a callback for the progress: Told (row_progress.hpp), or ReadBytes (read_report.hpp).
class ToldProgress {
 public:
  // `what`, `unit` and `clock`: as for Progress.
  explicit ToldProgress(std::string what, Progress::Unit unit = Progress::Unit::things,
                        Clock& clock = system_clock);
  // Shows how far the work is, which begins with the first call. `done`: number of parts that are
  // done. `all`: number of all parts; the number of the first call counts.
  void operator()(std::size_t done, std::size_t all);

 private:
  const std::string what_;            // words for the work
  const Progress::Unit unit_;         // unit in which the parts are counted
  Clock& clock_;                      // tells how long the work takes
  std::optional<Progress> progress_;  // line about the work; null: it has not begun
};

// Shows the progress of work in several stages: each has its own line, one after the other.
class StagedProgress {
 public:
  // `clock`: tells how long each stage takes.
  explicit StagedProgress(Clock& clock = system_clock) : clock_(clock) {}
  // Shows how far a stage of the work is. `what`: words for the stage, a text that is never
  // destroyed. A pointer to another text begins a new stage. `done`: number of parts of the stage
  // that are done. `all`: number of its parts; 0: unknown.
  void done(const char* what, std::size_t done, std::size_t all);

 private:
  Clock& clock_;                      // tells how long each stage takes
  const char* what_ = nullptr;        // words for the present stage; null: no stage has begun
  std::optional<Progress> progress_;  // line about the present stage; null: no stage has begun
};

// Returns the text of a progress line, such as "reading reports: 231 of 1,000, about 12 s left".
// `what`: words for the work. `done`: number of its parts that are done. `all`: number of all
// parts; 0: unknown. `taken`: time since the work began. The text has the time that is left if
// `all` is known, a part is done, a part is left, and the work has taken half a second. Amounts of
// Unit::bytes are rounded, as in "reading ci.json: 45.2 MiB of 107 MiB, about 3 s left".
std::string progress_line(const std::string& what, std::size_t done, std::size_t all,
                          std::chrono::nanoseconds taken,
                          Progress::Unit unit = Progress::Unit::things);

// Forbids lines of progress until the command ends. To be called before the command writes much to
// standard output without print(), since lines and output may share a terminal.
void forbid_progress() noexcept;

// Removes the line of progress from the terminal, if one is shown. Called before the command writes
// something else. May be called by a signal handler.
void hide_progress() noexcept;

}  // namespace cuwarden
