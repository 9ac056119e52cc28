#include "runtime_hooks/stacks/python/code_object.hpp"

namespace cuwarden::stacks::python {
namespace {

// Largest plausible line number, and length of a text.
constexpr std::uint32_t most_lines = 100'000'000;
constexpr std::uint64_t longest_text = std::uint64_t{1} << 24;

std::uint32_t character(const Characters& text, std::uint64_t index) noexcept {
  switch (text.bytes_each) {
    case 1:
      return at<std::uint8_t>(text.start + index);
    case 2:
      return at<std::uint16_t>(text.start + 2 * index);
    default:
      return at<std::uint32_t>(text.start + 4 * index);
  }
}

// Writes a str object's text as UTF-8, as far as whole characters fit. Lone surrogates, by which
// Python stands for undecodable bytes of a file's name, become question marks.
template <std::size_t room>
std::string_view text_of(std::uint64_t object, const Layout& layout,
                         char (&buffer)[room]) noexcept {
  const Characters text = characters_of(object, layout);
  std::size_t length = 0;
  for (std::uint64_t i = 0; i < text.count; ++i) {
    std::uint32_t code = character(text, i);
    if ((code >= 0xd800 && code < 0xe000) || code > 0x10ffff) code = '?';
    const std::size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (length + bytes > room) break;
    if (bytes == 1) {
      buffer[length++] = static_cast<char>(code);
      continue;
    }
    for (std::size_t part = bytes; part-- > 1; code >>= 6)
      buffer[length + part] = static_cast<char>(0x80 | (code & 0x3f));
    buffer[length] = static_cast<char>(0xf00u >> bytes | code);
    length += bytes;
  }
  return {buffer, length};
}

bool is_text(std::uint64_t address, const PythonSymbols& symbols, const Layout& layout) noexcept {
  if (!is_object(address, layout.other_characters, symbols.text_type)) return false;
  const auto state = at<std::uint32_t>(address + text_state);
  const Characters text = characters_of(address, layout);
  const bool is_compact = (state >> 5 & 1) != 0;
  return is_compact && text.count <= longest_text &&
         (text.bytes_each == 1 || text.bytes_each == 2 || text.bytes_each == 4) &&
         can_read(text.start, text.count * text.bytes_each);
}

}  // namespace

// Bits of PyASCIIObject::state: two for interning, three for the bytes of a character, compact,
// ASCII. Texts of code objects are compact.
Characters characters_of(std::uint64_t text, const Layout& layout) noexcept {
  const auto state = at<std::uint32_t>(text + text_state);
  Characters found{.count = at<std::uint64_t>(text + object_length)};
  found.bytes_each = state >> 2 & 7;
  const bool is_ascii = (state >> 6 & 1) != 0;
  found.start = text + (is_ascii ? layout.ascii_characters : layout.other_characters);
  return found;
}

std::uint64_t hash_of_unnumbered(std::uint64_t code, const Layout& layout) noexcept {
  return hash_of_code(code, layout);
}

bool is_plausible_code(std::uint64_t code, const PythonSymbols& symbols,
                       const Layout& layout) noexcept {
  if (!is_object(code, layout.code_bytes(), symbols.code_type)) return false;
  const auto file = at<std::uint64_t>(code + layout.code_file),
             name = at<std::uint64_t>(code + layout.code_name),
             lines = at<std::uint64_t>(code + layout.code_lines);
  return at<std::uint32_t>(code + layout.code_first_line) <= most_lines &&
         is_text(file, symbols, layout) && is_text(name, symbols, layout) &&
         is_object(lines, bytes_start, symbols.bytes_type) &&
         at<std::uint64_t>(lines + object_length) <= longest_table &&
         can_read(lines + bytes_start, at<std::uint64_t>(lines + object_length));
}

bool read_contents(std::uint64_t code, const PythonSymbols& symbols, const Layout& layout,
                   CodeContents& contents) noexcept {
  if (!is_plausible_code(code, symbols, layout)) return false;
  const auto lines = at<std::uint64_t>(code + layout.code_lines);
  contents.file = text_of(at<std::uint64_t>(code + layout.code_file), layout, contents.file_buffer);
  contents.name = text_of(at<std::uint64_t>(code + layout.code_name), layout, contents.name_buffer);
  contents.first_line = at<std::uint32_t>(code + layout.code_first_line);
  contents.lines = {reinterpret_cast<const std::uint8_t*>(lines + bytes_start),
                    at<std::uint64_t>(lines + object_length)};
  return true;
}

}  // namespace cuwarden::stacks::python
