// Reads the small encodings of unwind tables. Nothing outside the given range is read, whatever the
// bytes say: a value beyond the range is 0, and the cursor has failed from then on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cuwarden::stacks {

// Reads numbers of an unwind table from a range of bytes, one after the other. Nothing outside the
// range is read: a value that would reach beyond it is 0, and from then on the cursor has failed.
class Cursor {
 public:
  Cursor() = default;
  // Begins at `begin` and ends before `end`. The bytes must stay readable.
  Cursor(const std::uint8_t* begin, const std::uint8_t* end) noexcept : at_(begin), end_(end) {}

  // False once the cursor has failed: a read would have left the range, or a number in LEB128 had
  // more than 10 bytes.
  bool good() const noexcept { return good_; }
  // True if all bytes are read, or after a failure.
  bool at_end() const noexcept { return at_ == end_; }
  // Returns the address of the next byte to be read; the range's end after a failure.
  const std::uint8_t* position() const noexcept { return at_; }
  // Returns the number of bytes that are not read yet; 0 after a failure.
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }

  // Reads a number of type T, in the machine's byte order; 0 on failure.
  template <class T>
  T fixed() noexcept {
    T value{};
    const std::uint8_t* const from = at_;
    if (skip(sizeof value)) std::memcpy(&value, from, sizeof value);
    return value;
  }
  // Reads one byte; 0 on failure.
  std::uint8_t byte() noexcept { return fixed<std::uint8_t>(); }

  // Moves the cursor on by `bytes`. Returns false if fewer bytes are left; then the cursor has
  // failed.
  bool skip(std::uint64_t bytes) noexcept {
    if (bytes > left()) return fail();
    at_ += bytes;
    return true;
  }

  // Reads an unsigned number in LEB128, DWARF's encoding of variable length. Returns 0 on failure,
  // as for a number of more than 10 bytes. Drops bits above the 64th.
  std::uint64_t unsigned_leb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t next = byte();
      if (!good_ || shift > 63) return fail();
      value |= std::uint64_t{next & 0x7fu} << shift;
      if ((next & 0x80) == 0) return value;
    }
  }

  // Reads a signed number in LEB128, DWARF's encoding of variable length. Returns 0 on failure, as
  // for a number of more than 10 bytes. Drops bits above the 64th.
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

  // Reads a length (LEB128) and skips so many bytes. Returns a cursor over the skipped bytes; an
  // empty one on failure.
  Cursor block() noexcept {
    const std::uint64_t bytes = unsigned_leb();
    const std::uint8_t* const from = at_;
    if (!skip(bytes)) return {at_, at_};
    return {from, at_};
  }

 private:
  // Marks the cursor as failed and moves it to the end of the range. Returns false.
  bool fail() noexcept {
    good_ = false;
    at_ = end_;
    return false;
  }

  const std::uint8_t* at_ = nullptr;   // the next byte to be read; equal to end_ at the end
  const std::uint8_t* end_ = nullptr;  // the address after the range's last byte
  bool good_ = true;                   // false after a read has failed
};

}  // namespace cuwarden::stacks
