// Finds out what a text of JSON would cost before it is turned into a tree: few bytes can become
// much memory ("[],[],[]"), and a tree that is as deep as its text is long.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cuwarden {

// Memory that the tree of a report may take, about. A million stacks take half of it.
inline constexpr std::uint64_t largest_tree = std::uint64_t{4} << 30;

// Empty if the text is JSON of the outline that all reports have (an object of few levels, which
// hardly has a list directly in a list) and its tree stays below `most_memory`; otherwise the
// reason.
std::string wrong_outline(std::string_view json, std::uint64_t most_memory = largest_tree);

}  // namespace cuwarden
