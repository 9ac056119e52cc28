#include "reporters/files/plain_file.hpp"

#include <cerrno>

#include "reporters/words/error_text.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {

std::string read_plain_file(const std::string& path, std::size_t most_bytes, std::string& text) {
  const Descriptor file = open_to_read(path.c_str());
  if (!file) return error_text(errno);
  char piece[4096];
  for (;;) {
    const ssize_t count = file.read_some(piece);
    if (count < 0) return error_text(errno);
    if (count == 0) return "";
    text.append(piece, static_cast<std::size_t>(count));
    if (text.size() > most_bytes) return "it is larger than " + human_bytes(most_bytes);
  }
}

}  // namespace cuwarden
