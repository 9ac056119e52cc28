// Replaces parts of texts.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden {

// Replaces each occurrence of `what` in the text by `by`. `what` must not be empty. Text that was
// put in is not searched again.
inline void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

}  // namespace cuwarden
