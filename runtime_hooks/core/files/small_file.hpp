// Reads files of /proc and the numbers in them, without stdio, malloc or a descriptor that stays
// open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {

// Reads a file's first bytes into `into`, as many as fit. Returns the bytes read, as a text in
// `into`. The text is empty if the file cannot be opened, or if any read of it fails. `path` is
// relative to the descriptor `folder`, or to the current folder for AT_FDCWD.
inline std::string_view read_small_file(int folder, const char* path,
                                        std::span<char> into) noexcept {
  const Descriptor file = open_to_read(folder, path);
  std::size_t length = 0;
  while (file && length < into.size()) {
    const ssize_t got = file.read_some(into.subspan(length));
    if (got < 0) return {};
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  return {into.data(), length};
}
// Reads the first bytes of the file `path` into `into`, as many as fit. Returns the bytes read, as
// a text in `into`. The text is empty if the file cannot be opened, or if any read of it fails.
inline std::string_view read_small_file(const char* path, std::span<char> into) noexcept {
  return read_small_file(AT_FDCWD, path, into);
}

// Returns the decimal number with which the text begins, after blanks and tabs, and removes these
// and the number from the text. Returns null, with only the blanks and tabs removed, if there is no
// number, or one that needs more than 64 bits. Also null if the number may be cut off: no blank,
// tab or line feed follows.
inline std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  std::uint64_t value = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(text[digits] - '0'), &value))
      return std::nullopt;
  }
  const char next = digits < text.size() ? text[digits] : '\0';
  if (digits == 0 || (next != ' ' && next != '\t' && next != '\n')) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

}  // namespace cuwarden
