// Reads code objects: the functions of Python frames. Each parameter `code` is the address of a
// code object that a live Python frame uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/core/python_symbols.hpp"
#include "runtime_hooks/stacks/python/layout.hpp"
#include "runtime_hooks/stacks/python/object_fields.hpp"

namespace cuwarden::stacks::python {

// Greatest length that is plausible for a table of lines, in bytes, and for bytecode, in
// instructions.
inline constexpr std::uint64_t longest_table = std::uint64_t{1} << 20;

// The contents of a code object, which all of its frames have in common. Not to be copied, because
// `file` and `name` point into `file_buffer` and `name_buffer`.
struct CodeContents {
  static constexpr std::size_t longest_file = 1024, longest_name = 256;

  // File and qualified name of the function, in UTF-8; before 3.11 the plain name. Texts of more
  // than `longest_file` or `longest_name` bytes are cut.
  std::string_view file, name;
  std::uint32_t first_line = 0;  // line with which the function begins
  // The table of lines, in the code object's own memory: valid while the code object lives.
  std::span<const std::uint8_t> lines;
  char file_buffer[longest_file], name_buffer[longest_name];
};

// True if a code object lies at the address, and its file, name, first line and table of lines can
// be read and are plausible. False for all addresses if a seccomp filter forbids the check.
bool is_plausible_code(std::uint64_t code, const PythonSymbols&, const Layout&) noexcept;
// Reads a code object. Returns false, with nothing read, if is_plausible_code() is false for it.
bool read_contents(std::uint64_t code, const PythonSymbols&, const Layout&, CodeContents&) noexcept;

// The characters of a str object in memory: their address, their number, and the bytes of each (1,
// 2 or 4).
struct Characters {
  std::uint64_t start = 0, count = 0;
  unsigned bytes_each = 1;
};

// Returns where the characters of a str object lie. `text`: address of the object in this process.
// The caller knows three things, which are not checked: a str object lies there, can be read, and
// is compact. Names of functions and files are compact. Reads only the object's head.
Characters characters_of(std::uint64_t text, const Layout&) noexcept;

// Returns a hash of the `bytes` bytes from `start` on. The 8 bytes before `start` must be readable,
// too. The multiplications do not depend on each other, unlike those of hash_bytes(), so that the
// processor overlaps them: before 3.12, most of the time for reading a frame is spent here.
inline std::uint64_t hash_of_contents(std::uint64_t start, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t word = sizeof(std::uint64_t);
  const std::uint64_t end = start + bytes;
  std::uint64_t hash = bytes;
  const auto add = [&](std::uint64_t left, std::uint64_t right, std::uint64_t offset) {
    hash += fold_product(left ^ hash_salt[2], right ^ hash_salt[3] ^ offset) + left;
  };
  std::uint64_t offset = 0;
  for (; offset + 2 * word < bytes; offset += 2 * word)
    add(at<std::uint64_t>(start + offset), at<std::uint64_t>(start + offset + word), offset);
  // The last words overlap those before, or the object's head, which is shifted out.
  const auto last = at<std::uint64_t>(end - word);
  if (bytes >= 2 * word)
    add(at<std::uint64_t>(end - 2 * word), last, offset);
  else if (bytes >= word)
    add(at<std::uint64_t>(start), last, offset);
  else if (bytes != 0)
    add(0, last >> 8 * (word - bytes), offset);
  return hash;
}

// Returns a hash of a str object's text: Python's own, if Python has hashed the text, as it mostly
// has. So the result changes once, when Python first hashes the text. `text`: address of a compact
// str object, which must be readable and is not checked.
__attribute__((always_inline)) inline std::uint64_t hash_of_text(std::uint64_t text,
                                                                 const Layout& layout) noexcept {
  constexpr std::uint64_t not_hashed = UINT64_MAX;
  if (const auto kept = at<std::uint64_t>(text + text_hash); kept != not_hashed) return kept;
  const Characters characters = characters_of(text, layout);
  return hash_of_contents(characters.start, characters.count * characters.bytes_each);
}

// Returns a hash of a code object's file, name, first line and table of lines. `code`: address of
// the code object, which must be readable and is not checked.
__attribute__((always_inline)) inline std::uint64_t hash_of_code(std::uint64_t code,
                                                                 const Layout& layout) noexcept {
  const std::uint64_t file = hash_of_text(at<std::uint64_t>(code + layout.code_file), layout),
                      name = hash_of_text(at<std::uint64_t>(code + layout.code_name), layout),
                      lines = at<std::uint64_t>(code + layout.code_lines);
  return fold_product(file ^ hash_salt[0], name ^ hash_salt[1]) +
         hash_of_contents(lines + bytes_start, at<std::uint64_t>(lines + object_length)) +
         at<std::uint32_t>(code + layout.code_first_line);
}

// Returns hash_of_code(), for the rare code objects of 3.12 and later that have no number. `code`:
// address of the code object, which must be readable and is not checked.
std::uint64_t hash_of_unnumbered(std::uint64_t code, const Layout&) noexcept;

// Returns PythonFrame::stamp, which tells a code object from earlier and later ones at its address.
// From 3.12 on, it consists of the object's own number and its first line. Before that, and for the
// number 0, it is hash_of_code(). `code`: address of the code object, which must be readable and is
// not checked.
__attribute__((always_inline)) inline std::uint64_t stamp_of(std::uint64_t code,
                                                             const Layout& layout) noexcept {
  if (layout.code_version == Layout::none) return hash_of_code(code, layout);
  const std::uint64_t version = at<std::uint32_t>(code + layout.code_version);
  if (version == 0) [[unlikely]]
    return hash_of_unnumbered(code, layout);
  return version << 32 | at<std::uint32_t>(code + layout.code_first_line);
}

}  // namespace cuwarden::stacks::python
