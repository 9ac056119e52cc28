// Reads a file that a person named on a command line, in bounded time and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cuwarden {

// Bytes of the largest report that is read. A report of a million stacks has half as many.
inline constexpr std::size_t largest_report = std::size_t{1} << 30;

// Reads a JSON object: a regular file, "-" for standard input, or a pipe that this process was
// given by its number (/dev/stdin, /dev/fd/63). Returns an empty text if all was read into
// `content`; otherwise the reason, as words that follow the path in an error line. A file that is
// no regular file, is larger than `most_bytes` or does not begin as an object is not read.
std::string read_object_file(const std::string& path, std::size_t most_bytes, std::string& content);

}  // namespace cuwarden
