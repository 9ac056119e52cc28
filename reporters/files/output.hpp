// Buffered output to a file descriptor. SIGXFSZ is never raised for a file that is empty at first:
// before each write the limit on file sizes (ulimit -f) is checked, and a write that would pass the
// limit fails with EFBIG instead. After a failure later writes do nothing.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuwarden {

// Waits, without a limit of time, until a non-blocking descriptor accepts more bytes. Returns true
// if it does, or if a signal ended the wait early. Returns false if waiting fails.
bool wait_for_room(int descriptor) noexcept;

// Collects output in a buffer of 64 KiB in front of a file descriptor. The owner calls finish() at
// the end: the destructor writes nothing.
class Output {
 public:
  // Writes to `descriptor`, which remains the caller's: this object does not close it.
  explicit Output(int descriptor) noexcept;
  // Writes to `descriptor` only while it belongs to `file`, the status of a file by fstat(). The
  // descriptor remains the caller's: this object does not close it.
  Output(int descriptor, const struct stat& file) noexcept
      : descriptor_(descriptor),
        device_(file.st_dev),
        inode_(file.st_ino),
        is_file_(S_ISREG(file.st_mode)) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Adds text to the buffer. Whenever the buffer is full, it is written to the descriptor. Does
  // nothing once a write has failed.
  void write(std::string_view text) noexcept;
  // Writes the bytes that are still buffered; to be called at the end, since the destructor writes
  // nothing. Returns 0 if all output was written, otherwise the errno of the first failure.
  int finish() noexcept;
  // True if the descriptor still belongs to the file to which it belonged when this object was
  // made, or if that file is unknown. False if the program has closed the descriptor, or if the
  // descriptor belongs to another file.
  bool is_same_file() const noexcept;
  // Returns the errno of the first failed write so far; 0 if none failed. A write while
  // is_same_file() is false fails with EBADF.
  int error() const noexcept { return error_; }

 private:
  // Writes the buffer to the descriptor, and empties it. On failure, sets error_ to the errno, and
  // leaves the buffer as it is.
  void flush() noexcept;
  int descriptor_;  // descriptor to which the output goes; not owned
  // Device number of the file that the descriptor belonged to when the object was made; 0: unknown.
  dev_t device_ = 0;
  // Inode number of the file that the descriptor belonged to when the object was made; 0: unknown.
  ino_t inode_ = 0;
  bool is_file_ = false;       // true if the descriptor belongs to a regular file
  int error_ = 0;              // errno of the first failed write; 0: none failed
  std::uint64_t written_ = 0;  // bytes that this object has written to the descriptor so far
  std::size_t used_ = 0;       // bytes of output that wait in the buffer
  char buffer_[64 * 1024];     // output that was not yet written; `used_` bytes
};

}  // namespace cuwarden
