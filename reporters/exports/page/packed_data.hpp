// Packs data into the text of an HTML page.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden {

// Returns the data compressed (zlib, RFC 1950), as text in Base64, which no character of the data
// can break out of. Throws std::bad_alloc if memory is lacking.
std::string packed_data(std::string_view data);

}  // namespace cuwarden
