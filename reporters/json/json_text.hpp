// The text of JSON values that people may show on a terminal.
#pragma once

#include <string>

#include "reporters/words/printable.hpp"

namespace cuwarden {

// Returns the value as JSON in one line. Paths and names may have bytes that are not UTF-8. Such a
// byte becomes U+FFFD; the bytes of an incomplete character become one U+FFFD together. DEL and all
// characters outside of ASCII are written as escapes if the text has any control character
// (acts_on_a_terminal()).
template <class Json>
std::string json_text(const Json& value) {
  constexpr auto replace = Json::error_handler_t::replace;
  std::string text = value.dump(-1, ' ', false, replace);
  if (!acts_on_a_terminal(text)) return text;
  // `true`: all characters outside of ASCII are escaped. JSON asks for escapes of ASCII's control
  // characters only, and the others would reach the terminal.
  text = value.dump(-1, ' ', true, replace);
  for (std::size_t at = 0; (at = text.find('\x7f', at)) != text.npos;)
    text.replace(at, 1, "\\u007f");
  return text;
}

}  // namespace cuwarden
