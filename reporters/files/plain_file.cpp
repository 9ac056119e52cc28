#include "reporters/files/setting_file.hpp"

#include <cerrno>

#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {

int read_setting_file(const std::string& path, std::size_t most_bytes, std::string& text) {
  const Descriptor file = open_to_read(path.c_str());
  if (!file) return errno;
  char piece[4096];
  for (;;) {
    const ssize_t count = file.read_some(piece);
    if (count < 0) return errno;
    if (count == 0) return 0;
    text.append(piece, static_cast<std::size_t>(count));
    if (text.size() > most_bytes) return EFBIG;
  }
}

}  // namespace cuwarden
