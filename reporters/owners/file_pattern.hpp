// Patterns for files with code, as known_libraries.def, library_reserves.def and the setting
// CUWARDEN_LIBRARIES have them.
#pragma once

#include <string_view>

namespace cuwarden {

// True if the file at the path matches the pattern. A pattern with a slash must be a part of the
// path; a star in it is an ordinary character. A pattern that ends with a star must be the
// beginning of the file's name. Any other pattern must be the whole name of the file, or that of a
// shared library without its version or without its ending. So "libnccl.so" and "libnccl" match
// libnccl.so.2, and "libnccl" also matches libnccl-1a2b.so.2, as Python's packages rename
// libraries.
bool matches_file(std::string_view path, std::string_view pattern) noexcept;

}  // namespace cuwarden
