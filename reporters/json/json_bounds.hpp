// Finds out how much memory and depth a JSON text needs before it is parsed into a tree. A short
// text can need much memory ("[],[],[]"), or become a tree as deep as the text is long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// Approximate limit of the bytes of memory that the parsed tree of a report may take. A report of a
// million stacks takes half as much.
inline constexpr std::uint64_t largest_tree = std::uint64_t{4} << 30;

// Number of objects in each list that is a property of a JSON object, by the property's name; 0 for
// properties that are no lists. For a report: number of rows in each table.
using RowsOfTables = std::map<std::string, std::size_t, std::less<>>;

// The reason why a JSON text cannot be parsed into a tree safely.
struct WrongOutline {
  // The end of an error line. Empty if the text can be parsed safely.
  std::string reason;
  // True if the text begins as a file that cuwarden wrote does, and ends before its JSON is
  // complete.
  bool is_cut_off = false;
};

// Checks if `json` can be parsed into a tree safely. Returns the first reason against it; an empty
// reason if there is none. A safe text is a valid JSON object of at most 16 levels. At most 1000 of
// its lists lie directly in lists, and each object has at most 1000 properties. Its tree takes at
// most about `most_memory` bytes.
// `read`: is called after each MiB, with the number of bytes that were read so far. `rows`: if not
// null, is set to the numbers of objects in the lists that are properties of `json` itself, not of
// objects in it; unchanged if the text is not safe.
WrongOutline wrong_outline(
    std::string_view json, std::uint64_t most_memory = largest_tree,
    FunctionRef<void(std::size_t bytes)> read = [](std::size_t) {}, RowsOfTables* rows = nullptr);

}  // namespace cuwarden
