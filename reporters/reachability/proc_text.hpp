// Parts of the texts that the kernel has about a process in /proc.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace cuwarden::reachability {

// Returns the folder in /proc of a process. `pid`: the process; 0: this one.
inline std::string proc_folder(int pid) {
  return "/proc/" + (pid == 0 ? std::string("self") : std::to_string(pid));
}

// Returns the hexadecimal number at the start of the text, which may begin with "0x", and removes
// it from the text. 0 if the text does not begin with a number.
inline std::uint64_t take_hexadecimal(std::string_view& text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return value;
}

// Returns the first word of the text, and removes it from the text with the spaces before it. Empty
// if no word is left.
inline std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace cuwarden::reachability
