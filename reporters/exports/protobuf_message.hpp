// Writes messages of protocol buffers in their wire format:
// https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cuwarden {

// A message in the wire format of protocol buffers, to which fields are added. The parameter
// `field` of its functions is the field's number in the type of the message.
class ProtobufMessage {
 public:
  // Adds a field of one of the types int32, int64, uint32, uint64, bool or an enumeration. A
  // negative number is given as its two's complement of 64 bits.
  void number(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3 | 0);
    varint(value);
  }
  // Adds a field of a number, unless the number is 0. Readers take 0 for a field that is missing.
  void number_unless_0(std::uint32_t field, std::uint64_t value) {
    if (value != 0) number(field, value);
  }
  // Adds a field of the type string or bytes. Also adds a field whose type is a message, if `value`
  // is that message in the wire format.
  void text(std::uint32_t field, std::string_view value) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  // Adds a field whose type is a message.
  void message(std::uint32_t field, const ProtobufMessage& value) { text(field, value.bytes_); }
  // Adds a packed field of numbers; adds nothing if there are none.
  void numbers(std::uint32_t field, std::span<const std::uint64_t> values) {
    if (values.empty()) return;
    ProtobufMessage packed;
    for (const std::uint64_t value : values) packed.varint(value);
    text(field, packed.bytes_);
  }

  // Returns the message in the wire format. This object owns it.
  const std::string& bytes() const { return bytes_; }

 private:
  // Adds a number of 7 bits a byte, lowest bits first. The highest bit of a byte says that another
  // byte follows.
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  // Message so far, in the wire format.
  std::string bytes_;
};

}  // namespace cuwarden
