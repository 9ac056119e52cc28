// Finds out what a text of JSON would cost before it is turned into a tree: few bytes can become
// much memory ("[],[],[]"), and a tree that is as deep as its text is long.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cuwarden {

// Bytes of memory that the parsed tree of a report may take, about. A report of a million stacks
// takes half of it.
inline constexpr std::uint64_t largest_tree = std::uint64_t{4} << 30;

// Returns an empty text if `json` can be parsed safely; otherwise the reason. It must be valid
// JSON, an object of few levels with hardly any list directly in a list, as all reports are, and
// its tree must take less than `most_memory` bytes.
std::string wrong_outline(std::string_view json, std::uint64_t most_memory = largest_tree);

}  // namespace cuwarden
