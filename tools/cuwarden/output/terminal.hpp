// Draws on the terminal, for the live view of `cuwarden top`. Meanwhile each key is read at once
// and without echo, the alternate screen is shown, and the cursor is hidden.
#pragma once

#include <csignal>
#include <memory>
#include <string>

namespace cuwarden {

// Size of a terminal in letters; 80 by 24 if it is unknown.
struct TerminalSize {
  std::size_t columns = 80, rows = 24;
};

// The terminal of standard input and output while the command draws on it. Its old state is
// restored by the destructor, and when a signal ends the command. There is one object at a time.
class Terminal {
 public:
  // Prepares the terminal of standard input and output for drawing, and installs signal handlers.
  // Returns null if one of the two is not a terminal, or if TERM is empty or "dumb".
  static std::unique_ptr<Terminal> take();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  // Returns the present size of the terminal.
  TerminalSize size() const;
  // Draws lines, separated by line feeds, over the whole screen. Leaves out lines below the last
  // row. A line must not be longer than the terminal is wide.
  void draw(const std::string& lines) const;

  // The reason why wait() returned.
  struct Event {
    // time: the time is over. key: a key was pressed. redraw: the terminal's size has changed, or
    // the command was stopped and continued. end: the command must end.
    enum class Kind : std::uint8_t { time, key, redraw, end } kind = Kind::time;
    char key = 0;  // the key's letter; 0 unless `kind` is `key`
    // Only if `kind` is `end`: the signal that ends the command; 0: the terminal is gone.
    int signal = 0;
  };
  // Waits until a key is pressed or a signal comes, for at most `milliseconds`.
  Event wait(int milliseconds);

 private:
  Terminal() = default;
  // Stops this process after Control-Z, until the shell continues it. While the process is stopped,
  // the terminal has the mode that it had before take().
  void stop_until_continued();
  sigset_t outside_{};  // signal mask from before take(), which blocks signals outside of wait()
};

}  // namespace cuwarden
