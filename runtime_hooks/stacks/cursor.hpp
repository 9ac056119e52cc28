// Reads the small encodings of unwind tables. Nothing outside the given range is read, whatever the
// bytes say: a value beyond the range is 0, and the cursor has failed from then on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cuwarden::stacks {

class Cursor {
 public:
  Cursor() = default;
  Cursor(const std::uint8_t* begin, const std::uint8_t* end) noexcept : at_(begin), end_(end) {}

  // False once a read would have left the range.
  bool good() const noexcept { return good_; }
  bool at_end() const noexcept { return at_ == end_; }
  // The next byte to be read.
  const std::uint8_t* position() const noexcept { return at_; }
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }

  // Reads an integer of fixed size.
  template <class T>
  T fixed() noexcept {
    T value{};
    const std::uint8_t* const from = at_;
    if (skip(sizeof value)) std::memcpy(&value, from, sizeof value);
    return value;
  }
  std::uint8_t byte() noexcept { return fixed<std::uint8_t>(); }

  // Moves on by `bytes`; returns false, and the cursor is not good any more, if fewer are left.
  bool skip(std::uint64_t bytes) noexcept {
    if (bytes > left()) return fail();
    at_ += bytes;
    return true;
  }

  // Reads an unsigned number in LEB128; 0 if it has more than 64 bits.
  std::uint64_t unsigned_leb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t next = byte();
      if (!good_ || shift > 63) return fail();
      value |= std::uint64_t{next & 0x7fu} << shift;
      if ((next & 0x80) == 0) return value;
    }
  }

  // Reads a signed number in LEB128; 0 if it has more than 64 bits.
  std::int64_t signed_leb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t next = byte();
      if (!good_ || shift > 63) return fail();
      value |= std::uint64_t{next & 0x7fu} << shift;
      if ((next & 0x80) != 0) continue;
      if ((next & 0x40) != 0 && shift + 7 < 64) value |= ~std::uint64_t{0} << (shift + 7);
      return static_cast<std::int64_t>(value);
    }
  }

  // Reads a block that begins with its length, and returns a cursor over its content; an empty one
  // on failure.
  Cursor block() noexcept {
    const std::uint64_t bytes = unsigned_leb();
    const std::uint8_t* const from = at_;
    if (!skip(bytes)) return {at_, at_};
    return {from, at_};
  }

 private:
  bool fail() noexcept {
    good_ = false;
    at_ = end_;
    return false;
  }

  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  bool good_ = true;
};

}  // namespace cuwarden::stacks
