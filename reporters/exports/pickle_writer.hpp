// Writes objects of Python in version 2 of the format of its module pickle. Uses only instructions
// that readers outside Python understand, too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cuwarden {

// Writes a pickle, or a part of one. A pickle is a list of instructions for a machine with a stack,
// which put objects onto the stack.
class PickleWriter {
 public:
  // Begins a pickle.
  void begin() { bytes_ += "\x80\x02"; }
  // Ends a pickle. Its content is the object that lies on top of the stack.
  void end() { bytes_ += "."; }

  // Puts a text onto the stack.
  void text(std::string_view utf8) {
    bytes_ += 'X';
    little_endian(utf8.size(), 4);
    bytes_ += utf8;
  }
  // Puts a number onto the stack.
  void number(std::uint64_t value) {
    if (value < 0x100) {
      bytes_ += 'K';
      little_endian(value, 1);
    } else if (value < 0x80000000) {
      bytes_ += 'J';
      little_endian(value, 4);
    } else {
      // The last byte has the sign.
      const bool has_highest_bit = value >> 63 != 0;
      bytes_ += '\x8a';
      bytes_ += static_cast<char>(has_highest_bit ? 9 : 8);
      little_endian(value, 8);
      if (has_highest_bit) bytes_ += '\0';
    }
  }
  // Puts True or False onto the stack.
  void boolean(bool value) { bytes_ += value ? '\x88' : '\x89'; }
  // Puts a new list onto the stack.
  void empty_list() { bytes_ += ']'; }
  // Puts a new dictionary onto the stack.
  void empty_dictionary() { bytes_ += '}'; }

  // Puts a tuple of two numbers onto the stack.
  void pair(std::uint64_t first, std::uint64_t second) {
    number(first);
    number(second);
    bytes_ += '\x86';
  }
  // Takes the uppermost object from the stack, and appends it to the list below it.
  void append() { bytes_ += 'a'; }
  // Takes a value, and the key below it, from the stack, and puts them into the dictionary below
  // the key.
  void set_item() { bytes_ += 's'; }
  // Adds a key with a text to the dictionary on top of the stack.
  void entry(std::string_view key, std::string_view value) {
    text(key);
    text(value);
    set_item();
  }
  // Adds a key with a number to the dictionary on top of the stack.
  void entry(std::string_view key, std::uint64_t value) {
    text(key);
    number(value);
    set_item();
  }

  // Stores the uppermost object under a number that the caller chooses. The object stays on the
  // stack.
  void keep(std::uint32_t number) {
    bytes_ += 'r';
    little_endian(number, 4);
  }
  // Puts the object that keep() stored under this number onto the stack, so that the pickle has its
  // content only once.
  void kept(std::uint32_t number) {
    bytes_ += 'j';
    little_endian(number, 4);
  }

  // Returns the instructions so far. This object owns them.
  const std::string& bytes() const { return bytes_; }

 private:
  // Adds the lowest `size` bytes of the value, lowest byte first.
  void little_endian(std::uint64_t value, int size) {
    for (; size > 0; --size, value >>= 8) bytes_ += static_cast<char>(value & 0xff);
  }

  // Instructions of the pickle that were written so far.
  std::string bytes_;
};

}  // namespace cuwarden
