// Signals are blocked except while wait() waits, so that none interrupts other work and none is
// missed. The signals of a crash are never blocked.
#include "tools/cuwarden/output/terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "reporters/words/printable.hpp"
#include "tools/cuwarden/output/command_output.hpp"

namespace cuwarden {
namespace {

// The view gets a screen of its own, without a cursor. A letter of two columns can make a line too
// long: the terminal must cut the line rather than go on in the next one (?7).
constexpr char enter[] = "\033[?1049h\033[?25l\033[?7l", leave[] = "\033[?7h\033[?25h\033[?1049l";
// Time after which a byte of Escape without others behind it is that key. Other keys send all their
// bytes at once, and a slow connection may divide them.
constexpr int longest_key_ms = 50;
// All signals that would end the command by default. SIGBUS has its handler in ledger_file.cpp.
constexpr int ending_signals[] = {SIGINT,  SIGTERM,   SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,  SIGALRM,
                                  SIGPIPE, SIGVTALRM, SIGPROF, SIGPOLL, SIGPWR,  SIGSTKFLT};
constexpr int other_signals[] = {SIGWINCH, SIGTSTP, SIGCONT};
constexpr int crash_signals[] = {SIGSEGV, SIGABRT, SIGFPE,  SIGILL,
                                 SIGTRAP, SIGSYS,  SIGXCPU, SIGXFSZ};

termios settings_before{}, raw{};
volatile std::sig_atomic_t taken = 0, ended_by = 0, resized = 0, stopped = 0, continued = 0;

// Restores the terminal. May be called in a signal handler.
void give_back() {
  if (taken == 0) return;
  taken = 0;
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, leave, sizeof leave - 1);
  tcsetattr(STDIN_FILENO, TCSADRAIN, &settings_before);
}

// Writes control sequences of this file to the terminal. Errors are ignored: wait() notices a
// terminal that is gone.
void write_controls(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void take_screen() {
  tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  write_controls(enter);
  taken = 1;
}

void note(int number) {
  if (number == SIGWINCH) {
    resized = 1;
  } else if (number == SIGTSTP) {
    stopped = 1;
  } else if (number == SIGCONT) {
    continued = 1;
  } else {
    ended_by = number;
  }
}

void crash(int number) {
  give_back();
  signal(number, SIG_DFL);
  raise(number);
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(number, &action, nullptr);
}

}  // namespace

std::unique_ptr<Terminal> Terminal::take() {
  const char* const name = std::getenv("TERM");
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1 || name == nullptr || *name == '\0' ||
      std::string_view(name) == "dumb" || tcgetattr(STDIN_FILENO, &settings_before) != 0) {
    return nullptr;
  }
  raw = settings_before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;

  std::unique_ptr<Terminal> terminal(new Terminal);
  sigset_t ours;
  sigemptyset(&ours);
  const auto end_by = [&](int number) {
    struct sigaction present {};
    sigaction(number, nullptr, &present);
    if (present.sa_handler == SIG_IGN) return;  // nohup
    sigaddset(&ours, number);
    handle(number, note);
  };
  for (const int number : ending_signals) end_by(number);
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) end_by(number);
  for (const int number : other_signals) {
    sigaddset(&ours, number);
    handle(number, note);
  }
  sigprocmask(SIG_BLOCK, &ours, &terminal->outside_);
  for (const int number : crash_signals) handle(number, crash);
  before_a_crash = give_back;
  take_screen();
  return terminal;
}

Terminal::~Terminal() { give_back(); }

TerminalSize Terminal::size() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

void Terminal::draw(const std::string& lines) const {
  const auto [columns, rows] = size();
  // All lines are written in one piece over the old ones, so that the view does not flicker.
  std::string text = "\033[H";
  std::string_view rest = lines;
  std::size_t row = 0;
  for (; row < rows && !rest.empty(); ++row) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (row > 0) text += "\r\n";
    const std::string line = printable_lines(rest.substr(0, end), true);
    text += line;
    // Behind a full line the cursor stands on its last letter, which would be erased, too.
    if (columns_of(line) < columns) text += "\033[K";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (row != 0 && row < rows) text += "\r\n\033[J";
  write_controls(text);
}

// Handles Control-Z: restores the terminal for the shell, stops, and takes the terminal again when
// the shell continues the command.
void Terminal::stop_until_continued() {
  give_back();
  handle(SIGTSTP, SIG_DFL);
  raise(SIGTSTP);
  sigset_t unblocked = outside_, ours;
  sigdelset(&unblocked, SIGTSTP);
  sigprocmask(SIG_SETMASK, &unblocked, &ours);  // the process stops in this call
  sigprocmask(SIG_SETMASK, &ours, nullptr);
  handle(SIGTSTP, note);
  continued = 0;
  take_screen();
}

Terminal::Event Terminal::read_key() {
  char bytes[256];
  const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  if (count <= 0) return {Event::Kind::end, {}, 0};
  keys_.add({bytes, static_cast<std::size_t>(count)});
  Key key = keys_.next();
  if (key.name == Key::Name::none) return {};
  return {Event::Kind::key, std::move(key), 0};
}

Terminal::Event Terminal::wait(int milliseconds) {
  if (Key key = keys_.next(); key.name != Key::Name::none)
    return {Event::Kind::key, std::move(key), 0};
  if (keys_.is_amid_a_key()) milliseconds = std::min(milliseconds, longest_key_ms);
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const timespec limit{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  const int ready = ppoll(&input, 1, &limit, &outside_);
  if (ended_by != 0) return {Event::Kind::end, {}, ended_by};
  if (stopped != 0) {
    stopped = 0;
    stop_until_continued();
    return {Event::Kind::redraw, {}, 0};
  }
  if (continued != 0) {  // after a SIGSTOP, during which the shell had the terminal
    continued = 0;
    give_back();
    take_screen();
    return {Event::Kind::redraw, {}, 0};
  }
  if (resized != 0) {
    resized = 0;
    return {Event::Kind::redraw, {}, 0};
  }
  if (ready > 0) return read_key();
  if (ready == 0 && keys_.is_amid_a_key()) {
    if (Key key = keys_.finish(); key.name != Key::Name::none)
      return {Event::Kind::key, std::move(key), 0};
  }
  return {};
}

}  // namespace cuwarden
