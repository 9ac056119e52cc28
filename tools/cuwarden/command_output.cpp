#include "tools/cuwarden/command_output.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace cuwarden {

void (*before_a_crash)() = nullptr;

void print(int descriptor, const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t count = write(descriptor, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // a closed pipe (head, less) is not an error to speak of
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

void print_error(const std::string& line) { print(STDERR_FILENO, "cuwarden: " + line + "\n"); }

bool wants_colour(int descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) == 1 && (no_colour == nullptr || *no_colour == 0) &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

}  // namespace cuwarden
