// Reads a small file of text that a setting or an option names.
#pragma once

#include <cstddef>
#include <string>

namespace cuwarden {

// Reads the whole regular file at the path into `text`. Returns an empty text, or the reason why
// the file was not read, as words that follow the path in an error line; the parameter `text` may
// then hold a part of the file. A file with more than `most_bytes` is not read.
std::string read_plain_file(const std::string& path, std::size_t most_bytes, std::string& text);

}  // namespace cuwarden
