// A terminal that is drawn on: with raw keys, the alternate screen and no cursor. Its old state is
// restored when the command ends, by a signal, too.
#pragma once

#include <csignal>
#include <memory>
#include <string>

namespace cuwarden {

struct TerminalSize {
  std::size_t columns = 80, rows = 24;
};

class Terminal {
 public:
  // Takes the terminal of standard input and output. Returns null if they are no terminal, or one
  // that cannot be drawn on.
  static std::unique_ptr<Terminal> take();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  TerminalSize size() const;
  // Draws lines that are separated by line feeds. Text beyond the terminal's size is left out.
  void draw(const std::string& lines) const;

  struct Event {
    enum class Kind : std::uint8_t { time, key, redraw, end } kind = Kind::time;
    char key = 0;
    int signal = 0;  // after `end`: the signal that ends the command; 0 if the terminal is gone
  };
  // Waits for a key or a signal, for at most `milliseconds`.
  Event wait(int milliseconds);

 private:
  Terminal() = default;
  void stop_until_continued();
  sigset_t outside_{};  // signals that were blocked before take()
};

}  // namespace cuwarden
