// The page without data, as it was bundled when cuwarden was built.
#pragma once

#include <string_view>

namespace cuwarden {

// Text in the page that is replaced by the data.
inline constexpr std::string_view page_data_mark = "@CUWARDEN_DATA@";

// Returns the page, an HTML document that has page_data_mark once; empty if cuwarden was built
// without it. The text is never destroyed.
std::string_view page_template();

}  // namespace cuwarden
