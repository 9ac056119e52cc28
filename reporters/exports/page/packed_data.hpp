// Packs data into text that can stand in an HTML page.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden {

// Returns the data compressed (zlib, RFC 1950) and then encoded in Base64. Such text has no
// character with a meaning in HTML. Throws std::bad_alloc if memory is lacking.
std::string packed_data(std::string_view data);

}  // namespace cuwarden
