// Writes single JSON values: numbers and texts.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "reporters/files/output.hpp"
#include "reporters/json/json_text.hpp"

namespace cuwarden {

// Writes a whole number with all its digits.
template <std::integral Number>
void write_json_number(Output& output, Number value) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  output.write({text, static_cast<std::size_t>(end - text)});
}

// Returns a text in quotes, with the escapes that JSON asks for.
inline std::string quoted_json(std::string_view text) { return json_text(nlohmann::json(text)); }

// Writes a text in quotes, with the escapes that JSON asks for.
inline void write_json_text(Output& output, std::string_view text) {
  const auto plain = [](char letter) {
    return letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\';
  };
  if (!std::ranges::all_of(text, plain)) return output.write(quoted_json(text));
  output.write("\"");
  output.write(text);
  output.write("\"");
}

}  // namespace cuwarden
