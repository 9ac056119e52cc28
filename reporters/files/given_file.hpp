// Reads a file that a person named on a command line. Memory is bounded, and no device or named
// pipe is waited for.
#pragma once

#include <cstddef>
#include <string>

namespace cuwarden {

// Most bytes of a report file that is read. A report of a million stacks takes half as many.
inline constexpr std::size_t largest_report = std::size_t{1} << 30;

// Reads the text of a JSON object, and appends it to `content`. `path`: a regular file, "-" for
// standard input, or an open descriptor of this process (/dev/stdin, /dev/fd/63). Standard input
// and descriptors may also be a pipe, socket or terminal. Returns an empty text if the whole file
// was read; otherwise the reason, as words that follow the path in an error line. It fails for
// other kinds of files, for files larger than `most_bytes`, and for files that do not begin with a
// brace (behind blanks). After a failure `content` may hold a part of the file. The JSON is not
// checked further.
std::string read_object_file(const std::string& path, std::size_t most_bytes, std::string& content);

}  // namespace cuwarden
