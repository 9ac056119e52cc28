// Names of report files: each is short enough for its file system, and those of one path differ by
// a number before the ending, so that `*.json` finds them all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cuwarden {

// Bytes that every file system takes that is in use on Linux; eCryptfs allows the fewest.
inline constexpr std::size_t shortest_name_limit = 143;
inline constexpr std::size_t usual_name_limit = 255;

// Position of the last dot of a file name, if letters follow it; the name's size otherwise.
// The dot that hides a file begins no ending, except in ".json".
std::size_t ending_of(std::string_view name) noexcept;

// "ci.json" and 2 become "ci.2.json". 0 stands for no number.
std::string numbered_name(std::string_view name, unsigned number);

// The name, if it has `most` bytes or fewer (`most` is 32 or larger). Otherwise its beginning, "~",
// a checksum of the whole and its last third, which has the pid where the default names are used.
// Two different names stay different, and no letter of UTF-8 is cut in two.
std::string fitting_name(std::string_view name, std::size_t most);

// Bytes that a name may have in the folder that is open as `descriptor`.
std::size_t name_limit(int descriptor) noexcept;
// The limit in the folder at `path`; in the nearest folder above it where it does not exist yet.
std::size_t name_limit(std::string path) noexcept;

}  // namespace cuwarden
