// Draws on the terminal, for the live view of `cuwarden top`. While the view is shown, each key is
// read at once and without echo, the alternate screen is shown, and the cursor is hidden.
#pragma once

#include <csignal>
#include <memory>
#include <string>

#include "tools/cuwarden/output/keys.hpp"

namespace cuwarden {

// Size of a terminal in letters; 80 columns by 24 rows if it is unknown.
struct TerminalSize {
  std::size_t columns = 80, rows = 24;  // columns: letters in a line. rows: lines on the screen.
};

// The terminal of standard input and output while the command draws on it. The terminal gets its
// old state back in the destructor, and before a signal ends the command. The signal handlers and
// the blocked signals stay after the destructor. There is at most one object at a time.
class Terminal {
 public:
  // Prepares the terminal of standard input and output for drawing, installs signal handlers, and
  // returns the object. Returns null, and changes nothing, if standard input or output is not a
  // terminal, or if TERM is not set, empty or "dumb".
  static std::unique_ptr<Terminal> take();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  // Gives the terminal the state that it had before take().
  ~Terminal();

  // Returns the present size of the terminal.
  TerminalSize size() const;
  // Draws lines, separated by line feeds, over the whole screen. Leaves out lines below the
  // screen's last row. The terminal cuts lines with more letters than it has columns. Control
  // characters become question marks, except the colour sequences of cuwarden (printable.hpp).
  void draw(const std::string& lines) const;

  // The reason why wait() returned.
  struct Event {
    // time: the wait is over without another event, maybe before its time. key: a key was pressed.
    // redraw: the caller must draw again, because the terminal's size has changed or the command
    // was stopped and continued. end: the command must end.
    enum class Kind : std::uint8_t { time, key, redraw, end } kind = Kind::time;
    Key key{};  // the key that was pressed; none unless `kind` is `key`
    // Only if `kind` is `end`: the signal by which the command must end; 0: no signal came, but the
    // terminal no longer exists.
    int signal = 0;
  };
  // Waits until a key is pressed or a signal comes, for at most `milliseconds`, and returns the
  // reason why the wait ended. Signals are blocked outside of this call, except those of a crash.
  Event wait(int milliseconds);

 private:
  Terminal() = default;
  // Reads the bytes that the user has typed. Returns an event with the first whole key among them.
  // The event has the kind `time` if there is no whole key, and `end` if the terminal no longer
  // exists.
  Event read_key();
  // Stops this process after Control-Z, until the shell continues it. While the process is stopped,
  // the terminal has the mode that it had before take().
  void stop_until_continued();
  // Signal mask from before take(). It is in force during wait(); at other times, signals are
  // blocked.
  sigset_t outside_{};
  KeyDecoder keys_;  // bytes that the user has typed and that wait() has not returned as keys
};

}  // namespace cuwarden
