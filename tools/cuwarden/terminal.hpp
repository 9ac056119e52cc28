// A terminal that is drawn on: raw keys, the alternate screen, no cursor; given back as it was
// whatever ends the command, a signal included.
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
  // Null where standard input and output are no terminal that can be drawn on.
  static std::unique_ptr<Terminal> take();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  TerminalSize size() const;
  // Lines, separated by line feeds; what does not fit is left out.
  void draw(const std::string& lines) const;

  struct Event {
    enum class Kind : std::uint8_t { time, key, redraw, end } kind = Kind::time;
    char key = 0;
    int signal = 0;  // end: the one that ends the command; 0: the terminal is gone
  };
  // Waits for a key or a signal, at most so long.
  Event wait(int milliseconds);

 private:
  Terminal() = default;
  void stop_until_continued();
  sigset_t outside_{};  // the signals that were blocked before
};

}  // namespace cuwarden
