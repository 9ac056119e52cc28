// Patterns of the paths of files with code, as the lists of libraries in this folder have them.
#pragma once

#include <string_view>

namespace cuwarden {

// True if the file at the path matches the pattern. With a slash, a pattern is a part of the path.
// With a star at its end, it is the beginning of the file's name. Without both, it is a whole name
// of a file, or that of a shared library without its version or its ending: "libnccl.so" and
// "libnccl" match libnccl.so.2, and "libnccl" matches libnccl-1a2b.so.2.
bool matches_file(std::string_view path, std::string_view pattern) noexcept;

}  // namespace cuwarden
