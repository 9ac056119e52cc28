// Writes a file that people keep, such as one under version control.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden {

// Writes the text to the file at the path, whole or not at all: to a temporary file beside it,
// which is then renamed. A file that is there is replaced, and its permissions are kept; a new file
// has those that the umask allows. A symbolic link stays, and the file to which it leads is
// replaced; one that leads nowhere is a failure. Returns 0, or an errno.
int write_whole_file(const std::string& path, std::string_view text);

}  // namespace cuwarden
