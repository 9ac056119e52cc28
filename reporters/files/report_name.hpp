// Names of report files: each is short enough for its file system, and those of one path differ by
// a number before the ending, so that `*.json` finds them all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cuwarden {

// Bytes that a file name may have on every file system in use on Linux: eCryptfs allows the fewest.
inline constexpr std::size_t shortest_name_limit = 143;
inline constexpr std::size_t usual_name_limit = 255;  // on most file systems

// Returns the position of the ending of a file name: of its last dot, if letters follow it;
// otherwise the name's size. A dot at the beginning hides a file and begins no ending, except in
// ".json".
std::size_t ending_of(std::string_view name) noexcept;

// Returns the name with a number before its ending: "ci.json" and 2 become "ci.2.json". 0 stands
// for no number.
std::string numbered_name(std::string_view name, unsigned number);

// Returns the name, shortened to at most `most` bytes if it is longer; `most` is 32 or larger. A
// shortened name is the beginning, "~", a checksum of the whole name and its last third, in which
// default names have the pid. Different names stay different, and no letter of UTF-8 is cut in two.
std::string fitting_name(std::string_view name, std::size_t most);

// Returns the bytes that a file name may have in the folder that is open as `descriptor`.
std::size_t name_limit(int descriptor) noexcept;
// Returns the bytes that a file name may have in the folder at `path`; if it does not exist yet, in
// the nearest folder above it.
std::size_t name_limit(std::string path) noexcept;

}  // namespace cuwarden
