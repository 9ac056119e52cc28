// A question that tests of the report's texts ask.
#pragma once

#include <string>

namespace cuwarden::test {

// Returns true if the text has this part.
inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace cuwarden::test
