#include "tools/cuwarden/output/command_output.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "reporters/files/output.hpp"
#include "reporters/words/error_text.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/setting_values.hpp"
#include "tools/cuwarden/output/progress.hpp"

namespace cuwarden {

void (*before_a_crash)() = nullptr;

namespace {

int stdout_error = 0;  // errno of the first write to standard output that failed
// Exit status if memory runs out.
int no_memory_status = 2;
// The user's wish for colours.
Colours colours = Colours::automatic;

void write_whole(int descriptor, std::string_view text) {
  hide_progress();
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count < 0 && (errno == EINTR || (errno == EAGAIN && wait_for_room(descriptor)))) continue;
    if (count <= 0) {
      if (descriptor == STDOUT_FILENO) output_failed(count < 0 ? errno : EIO);
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

// Makes the signal harmless by a handler rather than by SIG_IGN: programs that the command starts
// would inherit SIG_IGN.
void turn_into_an_error(int number) {
  struct sigaction action {};
  if (sigaction(number, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

}  // namespace

void prepare_output() {
  turn_into_an_error(SIGPIPE);
  turn_into_an_error(SIGXFSZ);
  // A new descriptor gets the lowest free number, so these loops fill the closed ones of 0 to 2.
  // They allow no access (O_PATH): a write fails with EBADF, as on a closed descriptor.
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) < 0) return;
  }
}

void print(int descriptor, std::string_view text) {
  write_whole(descriptor, printable_lines(text, wants_colour(descriptor)));
}

void print_line(int descriptor, std::string_view line) {
  write_whole(descriptor, printable(std::string(line)) + "\n");
}

void print_error(std::string_view line) {
  print_line(STDERR_FILENO, "cuwarden: " + std::string(line));
}

int no_memory() {
  write_whole(STDERR_FILENO,
              "cuwarden: not enough memory; allow more (ulimit -v), or give smaller input\n");
  return no_memory_status;
}

void status_without_memory(int status) { no_memory_status = status; }

std::string name_in_a_line(const std::string& name) { return name.empty() ? "''" : name; }

void set_colours(Colours wish) { colours = wish; }

bool wants_colour(int descriptor) {
  if (colours != Colours::automatic) return colours == Colours::always;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) == 1 && (no_colour == nullptr || *no_colour == 0) &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

std::size_t columns_for(int descriptor) {
  constexpr std::size_t least = 20, least_of_terminal = 60, most = 200, of_file = 100;
  if (const char* const given = std::getenv("COLUMNS"); given != nullptr && *given != '\0')
    if (const auto columns = parse_number(given, unsigned{1} << 20); columns && *columns >= least)
      return *columns;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col != 0)
    return std::clamp<std::size_t>(size.ws_col, least_of_terminal, most);
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) ? of_file : 0;
}

bool wants_ascii() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const locale = std::getenv(name);
    if (locale == nullptr || *locale == '\0') continue;
    const std::string_view text = locale;
    constexpr std::string_view names_of_utf8[] = {"UTF-8", "utf-8", "UTF8", "utf8"};
    return std::ranges::none_of(
        names_of_utf8, [&](std::string_view charset) { return text.find(charset) != text.npos; });
  }
  return false;
}

void output_failed(int error) {
  if (stdout_error == 0) stdout_error = error;
}

int finish_output(int status) {
  constexpr int failed = 2;
  if (stdout_error == 0 || stdout_error == EPIPE) return status;
  print_error(std::string("cannot write to standard output: ") + error_text(stdout_error) +
              "; the output is incomplete");
  return failed;
}

}  // namespace cuwarden
