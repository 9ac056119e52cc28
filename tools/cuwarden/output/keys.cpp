#include "tools/cuwarden/output/keys.hpp"

#include <cstdlib>

#include "reporters/words/printable.hpp"

namespace cuwarden {
namespace {

constexpr char escape = '\033';

// Returns the key of a sequence that ends with a letter: "\033[A" and "\033OA" are the key Up.
Key::Name by_letter(char last) {
  switch (last) {
    case 'A':
      return Key::Name::up;
    case 'B':
      return Key::Name::down;
    case 'C':
      return Key::Name::right;
    case 'D':
      return Key::Name::left;
    case 'H':
      return Key::Name::home;
    case 'F':
      return Key::Name::end;
    case 'M':
      return Key::Name::enter;  // the Enter key of the number block
    default:
      return Key::Name::none;
  }
}

// Returns the key of a sequence that ends with a tilde: "\033[5~" is the key Page Up.
Key::Name by_number(std::string_view parameters) {
  switch (std::atoi(std::string(parameters).c_str())) {
    case 1:
    case 7:
      return Key::Name::home;
    case 3:
      return Key::Name::erase;
    case 4:
    case 8:
      return Key::Name::end;
    case 5:
      return Key::Name::page_up;
    case 6:
      return Key::Name::page_down;
    default:
      return Key::Name::none;
  }
}

// Returns the number of bytes that the UTF-8 character with this first byte has; 1 if the byte
// begins none.
std::size_t bytes_of_letter(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte >= 0xc2 && byte <= 0xdf) return 2;
  if (byte >= 0xe0 && byte <= 0xef) return 3;
  return byte >= 0xf0 && byte <= 0xf4 ? 4 : 1;
}

bool continues_a_letter(std::string_view bytes) {
  for (const char byte : bytes)
    if (starts_letter(byte)) return false;
  return true;
}

}  // namespace

bool KeyDecoder::take_sequence(Key& key) {
  if (bytes_.size() == 1) return false;
  if (bytes_[1] != '[' && bytes_[1] != 'O') {  // Escape, and another key at once
    key.name = Key::Name::escape;
    bytes_.erase(0, 1);
    return true;
  }
  std::size_t end = 2;  // parameters, as of a key with Shift, are bytes from 0x20 to 0x3f
  while (end < bytes_.size() && bytes_[end] >= 0x20 && bytes_[end] <= 0x3f) ++end;
  if (end == bytes_.size()) return false;
  key.name = bytes_[end] == '~' ? by_number(std::string_view(bytes_).substr(2, end - 2))
                                : by_letter(bytes_[end]);
  bytes_.erase(0, end + 1);
  return true;
}

bool KeyDecoder::take(Key& key) {
  key = {};
  if (bytes_.empty()) return false;
  const char first = bytes_.front();
  if (first == escape) return take_sequence(key);
  std::size_t taken = 1;
  if (first == '\r' || first == '\n') {
    key.name = Key::Name::enter;
  } else if (first == '\b' || first == '\177') {
    key.name = Key::Name::backspace;
  } else {
    const std::size_t whole = bytes_of_letter(first);
    if (bytes_.size() < whole && continues_a_letter(std::string_view(bytes_).substr(1)))
      return false;
    const Utf8Letter letter = first_letter(bytes_);
    taken = letter.bytes;
    if (letter.valid && !is_control(letter.code)) key = {Key::Name::text, bytes_.substr(0, taken)};
  }
  bytes_.erase(0, taken);
  return true;
}

Key KeyDecoder::next() {
  Key key;
  while (take(key)) {
    if (key.name != Key::Name::none) return key;
  }
  return {};
}

Key KeyDecoder::finish() {
  const bool is_escape = !bytes_.empty() && bytes_.front() == escape;
  bytes_.clear();
  return {is_escape ? Key::Name::escape : Key::Name::none};
}

}  // namespace cuwarden
