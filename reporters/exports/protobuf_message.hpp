// Writes messages of protocol buffers in their wire format.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cuwarden {

// A message, to which fields are added. `field`: number of the field in the message's type.
class ProtobufMessage {
 public:
  // Adds a field of one of the types int32, int64, uint32, uint64, bool or an enumeration. A
  // negative number is given as its two's complement of 64 bits.
  void number(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3 | 0);
    varint(value);
  }
  // Adds the field unless its value is 0, which readers assume for a field that is not there.
  void number_unless_0(std::uint32_t field, std::uint64_t value) {
    if (value != 0) number(field, value);
  }
  // Adds a field of the type string or bytes, or of a message that is already in the wire format.
  void text(std::uint32_t field, std::string_view value) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  // Adds a field whose type is a message.
  void message(std::uint32_t field, const ProtobufMessage& value) { text(field, value.bytes_); }
  // Adds a packed field of numbers; nothing if there are none.
  void numbers(std::uint32_t field, std::span<const std::uint64_t> values) {
    if (values.empty()) return;
    ProtobufMessage packed;
    for (const std::uint64_t value : values) packed.varint(value);
    text(field, packed.bytes_);
  }

  // Returns the message in the wire format, which this object owns.
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace cuwarden
