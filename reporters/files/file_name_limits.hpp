// Makes names of report files that are short enough for their file systems. If a name is taken, a
// number is put before its ending ("ci.1.json"), so that `*.json` finds all reports.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cuwarden {

// Number of bytes that a file name may have on every file system in use on Linux. eCryptfs allows
// the fewest.
inline constexpr std::size_t shortest_name_limit = 143;
// Number of bytes that a file name may have on most file systems.
inline constexpr std::size_t usual_name_limit = 255;

// Returns the offset of a file name's ending, such as ".json": the offset of the last dot, if a
// letter of ASCII stands anywhere behind it. Returns the name's size if there is no ending. A dot
// at the name's beginning begins an ending only in ".json"; otherwise it hides the file.
std::size_t ending_of(std::string_view name) noexcept;

// Returns the file name with a number before its ending: "ci.json" and 2 become "ci.2.json". If
// `number` is 0, the name is returned unchanged.
std::string numbered_name(std::string_view name, unsigned number);

// Returns the file name, shortened to at most `most` bytes if it is longer. `most`: 32 or larger. A
// shortened name is the name's beginning, "~", a checksum of the whole name, and the name's end.
// The end takes a third of `most` bytes, so that it keeps the pid at the end of a
// default_report_name. Different names get different results, unless their checksums are equal. No
// character of UTF-8 is cut in two.
std::string fitting_name(std::string_view name, std::size_t most);

// Returns the most bytes that a file name may have in the folder that is open as `descriptor`, but
// not more than usual_name_limit. Returns usual_name_limit if the system does not tell.
std::size_t name_limit(int descriptor) noexcept;
// Returns the most bytes that a file name may have in the folder at `path`, but not more than
// usual_name_limit. An empty path is the current folder. If the folder does not exist yet, the
// nearest existing folder that the path names counts; without one, the current or the root folder.
// Returns usual_name_limit if the system does not tell.
std::size_t name_limit(std::string path) noexcept;

}  // namespace cuwarden
