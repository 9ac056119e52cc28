// Reads a small file of text that a setting or an option names.
#pragma once

#include <cstddef>
#include <string>

namespace cuwarden {

// Appends the whole content of the regular file at the path to `text`. Returns an empty text if
// that succeeds; otherwise the reason, as words that follow the path in an error line. A file with
// more than `most_bytes` is a failure. After a failure the parameter `text` may hold a part of the
// file.
std::string read_plain_file(const std::string& path, std::size_t most_bytes, std::string& text);

}  // namespace cuwarden
