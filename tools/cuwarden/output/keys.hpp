// Decodes the bytes that a terminal sends while a user presses keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cuwarden {

// A key that the user has pressed.
struct Key {
  // none: no key, or a key that has no name here. text: a key that writes a character. backspace:
  // the key that erases the character before the cursor. erase: the key Delete, which erases the
  // character behind the cursor. The other names are those of the keys on a keyboard.
  enum class Name : std::uint8_t {
    none,
    text,
    up,
    down,
    left,
    right,
    page_up,
    page_down,
    home,
    end,
    enter,
    escape,
    backspace,
    erase,
  };
  Name name = Name::none;
  std::string text{};  // the character in UTF-8 if `name` is `text`; otherwise empty

  // True if the key writes this character. The character must be in UTF-8.
  bool is(std::string_view character) const { return name == Name::text && text == character; }
  bool operator==(const Key&) const = default;
};

// Divides the bytes that a terminal sends into keys. Most keys other than characters send several
// bytes, of which the first is the one that the key Escape sends alone.
class KeyDecoder {
 public:
  // Adds bytes that the terminal has sent.
  void add(std::string_view bytes) { bytes_ += bytes; }
  // Returns the next key, and removes its bytes from those that were added. Returns Key::Name::none
  // if the bytes are no whole key yet. Skips bytes of keys that Key::Name lacks, and bytes that are
  // no text.
  Key next();
  // True if bytes of the terminal are left that may be the beginning of a key.
  bool is_amid_a_key() const { return !bytes_.empty(); }
  // To be called when the terminal will send no more bytes soon. Returns the key Escape if the
  // bytes that are not decoded yet begin with its byte, and Key::Name::none otherwise. Drops all
  // bytes.
  Key finish();

 private:
  // Removes the bytes of one key from bytes_, which the terminal has sent. Sets `key` to this key;
  // its name is Key::Name::none if Key::Name lacks the key. Returns false, and leaves bytes_ as it
  // is, if bytes_ has no whole key yet.
  bool take(Key& key);
  // Does what take() does, for bytes_ that begins with the byte of Escape.
  bool take_sequence(Key& key);
  std::string bytes_;  // bytes that the terminal has sent and that are not decoded into keys yet
};

}  // namespace cuwarden
