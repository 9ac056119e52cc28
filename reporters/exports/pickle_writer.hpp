// Writes objects of Python in the format of its module pickle, version 2, with the instructions
// alone that readers outside Python know, too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cuwarden {

// A part of a pickle: instructions for a machine with a stack, which put objects onto it.
class PickleWriter {
 public:
  // Begins a pickle, and ends one. The object that lies on the stack then is its content.
  void begin() { bytes_ += "\x80\x02"; }
  void end() { bytes_ += "."; }

  // Puts an object onto the stack.
  void text(std::string_view utf8) {
    bytes_ += 'X';
    little_endian(utf8.size(), 4);
    bytes_ += utf8;
  }
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
  void boolean(bool value) { bytes_ += value ? '\x88' : '\x89'; }
  void empty_list() { bytes_ += ']'; }
  void empty_dictionary() { bytes_ += '}'; }

  // Puts two numbers onto the stack, as a tuple.
  void pair(std::uint64_t first, std::uint64_t second) {
    number(first);
    number(second);
    bytes_ += '\x86';
  }
  // Takes the uppermost object, and appends it to the list below it.
  void append() { bytes_ += 'a'; }
  // Takes a value and a key below it, and puts them into the dictionary below both.
  void set_item() { bytes_ += 's'; }
  // Adds an entry to the dictionary on the stack.
  void entry(std::string_view key, std::string_view value) {
    text(key);
    text(value);
    set_item();
  }
  void entry(std::string_view key, std::uint64_t value) {
    text(key);
    number(value);
    set_item();
  }

  // Keeps the uppermost object, which stays on the stack, under a number.
  void keep(std::uint32_t number) {
    bytes_ += 'r';
    little_endian(number, 4);
  }
  // Puts an object that was kept onto the stack, so that it is stored once only.
  void kept(std::uint32_t number) {
    bytes_ += 'j';
    little_endian(number, 4);
  }

  // Returns the instructions so far, which this object owns.
  const std::string& bytes() const { return bytes_; }

 private:
  void little_endian(std::uint64_t value, int size) {
    for (; size > 0; --size, value >>= 8) bytes_ += static_cast<char>(value & 0xff);
  }

  std::string bytes_;
};

}  // namespace cuwarden
