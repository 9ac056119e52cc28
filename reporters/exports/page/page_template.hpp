// The HTML page without data, as it was bundled when cuwarden was built.
#pragma once

#include <string_view>

namespace cuwarden {

// Text in the bundled page in whose place the data is put.
inline constexpr std::string_view page_data_mark = "@CUWARDEN_DATA@";

// Returns the HTML document, which has page_data_mark once; empty if cuwarden was built without the
// page. The text is never destroyed.
std::string_view page_template();

}  // namespace cuwarden
