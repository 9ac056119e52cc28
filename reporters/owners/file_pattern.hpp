// Patterns of the paths of files with code, as the lists of libraries in this folder have them.
#pragma once

#include <string_view>

namespace cuwarden {

// True if the file at the path matches the pattern, which has one of three forms. With a slash: a
// part of the path. With a star at its end: the beginning of the file's name. Without both: the
// name of a shared library without its ending, such as "libnccl" for libnccl.so.2 and
// libnccl-1a2b.so.2.
bool matches_file(std::string_view path, std::string_view pattern) noexcept;

}  // namespace cuwarden
