// The text of JSON values that people may show on a terminal.
#pragma once

#include <string>

#include "reporters/words/printable.hpp"

namespace cuwarden {

// Returns the value as JSON in one line. Paths and names may have bytes that are not UTF-8: each
// such byte becomes U+FFFD. If the text then has control characters (acts_on_a_terminal()), all
// characters outside of ASCII, and DEL, are written as escapes.
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
