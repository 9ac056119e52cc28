// Distances between names, by which the known name most like a misspelt one is found.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace cuwarden {

// Returns the least number of bytes to insert, delete or replace that turns one name into the
// other. Returns 64 if one of the names has 64 bytes or more. Allocates nothing.
inline std::size_t edits_between(std::string_view a, std::string_view b) {
  constexpr std::size_t limit = 64;
  if (a.size() >= limit || b.size() >= limit) return limit;
  std::size_t row[limit] = {};
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// Returns the least edits_between() of `part` and the substrings of `name`: a small number if
// `part` is a misspelt part of `name`. Compares the whole name, each substring that is as long as
// `part`, and each shorter end of `name`.
inline std::size_t edits_to_part(std::string_view part, std::string_view name) {
  std::size_t least = edits_between(part, name);
  for (std::size_t start = 0; start < name.size(); ++start)
    least = std::min(least, edits_between(part, name.substr(start, part.size())));
  return least;
}

}  // namespace cuwarden
