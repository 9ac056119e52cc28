// Reads a small file that a setting of the process names.
#pragma once

#include <cstddef>
#include <string>

namespace cuwarden {

// Reads the whole regular file at the path into `text`. Returns 0, or an errno: EFBIG if the file
// has more than `most_bytes`; `text` may then hold a part of the file.
int read_setting_file(const std::string& path, std::size_t most_bytes, std::string& text);

}  // namespace cuwarden
