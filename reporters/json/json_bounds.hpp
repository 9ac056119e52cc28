// Finds out how much memory and depth a JSON text needs before it is parsed into a tree. A short
// text can need much memory ("[],[],[]"), or become a tree as deep as the text is long.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cuwarden {

// Approximate limit of the bytes of memory that the parsed tree of a report may take. A report of a
// million stacks takes half as much.
inline constexpr std::uint64_t largest_tree = std::uint64_t{4} << 30;

// Returns an empty text if `json` can be parsed into a tree safely; otherwise the reason, as the
// end of an error line. The text must be a valid JSON object of at most 16 levels. At most 1000 of
// its lists may lie directly in lists, and each object may have at most 1000 properties. Its tree
// must take at most about `most_memory` bytes.
std::string wrong_outline(std::string_view json, std::uint64_t most_memory = largest_tree);

}  // namespace cuwarden
