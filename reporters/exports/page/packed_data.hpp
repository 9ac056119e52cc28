// Packs data into text that can stand in an HTML page.
#pragma once

#include <string>
#include <string_view>

#include "reporters/model/row_progress.hpp"

namespace cuwarden {

// Returns the data compressed (zlib, RFC 1950) and then encoded in Base64. Such text has no
// character with a meaning in HTML. Throws std::bad_alloc if memory is lacking. `told`: is called
// now and then with the progress: number of bytes that were compressed so far, and of all.
std::string packed_data(
    std::string_view data, Told told = [](std::size_t, std::size_t) {});

}  // namespace cuwarden
