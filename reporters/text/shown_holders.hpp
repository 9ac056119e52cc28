// Call stacks that hold memory, in lists that show the largest ones alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "reporters/text/elements/text_elements.hpp"

namespace cuwarden {

// Returns the number of call stacks that a list of `count` holders shows: at most three, and at
// most `top`, the rows that the user asked for (TextOptions::top). If `top` is 0, all are shown.
std::size_t shown_holders(std::size_t count, std::size_t top);

// Adds a line about the holders that a list leaves out: "… 4 more holders, 2.3 GiB (--top 0 shows
// all)". Adds nothing if `count` is 0. `bytes`: their bytes in all.
void add_left_out_holders(std::size_t count, std::uint64_t bytes, const Style&, std::string& text);

}  // namespace cuwarden
