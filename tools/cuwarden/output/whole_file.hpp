// Writes a file that people keep, such as one under version control.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "reporters/files/output.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// Writes the text to the file at the path, whole or not at all: to a temporary file beside it,
// which is then renamed. A file that is there is replaced, and its permissions are kept; a new file
// has those that the umask allows. A symbolic link stays, and the file to which it leads is
// replaced; one that leads nowhere is a failure. Returns 0, or an errno.
int write_whole_file(const std::string& path, std::string_view text);

// Writes a file as above, with the content that write() gives to the output. `new_mode`:
// permissions of a new file, such as 0600, which only its owner may read.
int write_whole_file(const std::string& path, mode_t new_mode, FunctionRef<void(Output&)> write);

}  // namespace cuwarden
