// A buffer in front of a file descriptor. It never raises SIGXFSZ: the limit on file sizes is
// compared before each write, and a write that would pass it fails with EFBIG instead. The first
// error stays; later writes do nothing. The descriptor remains the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuwarden {

// Waits until a non-blocking descriptor accepts more bytes. Returns false if it never will.
bool wait_for_room(int descriptor) noexcept;

// Buffered output to a descriptor, which it does not close.
class Output {
 public:
  explicit Output(int descriptor) noexcept : descriptor_(descriptor) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Adds text to the buffer, and writes the buffer when it is full. Does nothing after a failure.
  void write(std::string_view text) noexcept;
  // Writes the bytes that are still buffered. Returns 0, or the errno of the first failure.
  int finish() noexcept;
  // Returns the errno of the first failure so far; 0 if there was none.
  int error() const noexcept { return error_; }

 private:
  void flush() noexcept;

  int descriptor_;
  int error_ = 0;
  std::uint64_t written_ = 0;
  std::size_t used_ = 0;
  char buffer_[64 * 1024];
};

}  // namespace cuwarden
