// Reads a file that a person named on a command line, in bounded time and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cuwarden {

// No report is larger: that of a million stacks has half of it.
inline constexpr std::size_t largest_report = std::size_t{1} << 30;

// Reads a JSON object: a regular file, "-" for standard input, or a pipe that this process was
// given by its number (/dev/stdin, /dev/fd/63). Empty if all was read; otherwise the reason, as
// words that follow the path. Nothing is read of a file that is none, is larger than `most_bytes`,
// or does not begin as an object.
std::string read_object_file(const std::string& path, std::size_t most_bytes, std::string& content);

}  // namespace cuwarden
