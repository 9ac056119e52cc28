// Writes cuwarden's messages to standard error, or to the file that CUWARDEN_LOG names: a regular
// file, a terminal, /dev/null, or a descriptor of the program (/dev/stdout, /dev/stderr,
// /dev/fd/N). No file is kept open between two messages, since the program may close or reuse any
// descriptor.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string_view>

namespace cuwarden::shim {

// Writes the text to `fd`, the descriptor of a file, a pipe or a terminal. Waits up to 100 ms until
// a pipe's reader makes room for the first 4,096 bytes; without room, nothing is written. Later
// bytes are not waited for, so a longer text may be cut. Failures are not reported. Changes errno.
//
// Blocks during the call the signals that a write can raise. SIGPIPE comes if a pipe's reader has
// gone, and SIGXFSZ if a file is at the process's size limit. SIGTTOU comes if a background job
// writes to a terminal that stops such jobs; while it is blocked, the terminal takes the text.
void write_without_harm(int fd, std::string_view text);

// Stores which file standard error (descriptor 2) leads to. The program may later close descriptor
// 2 and get the number for a data file or a socket. Then messages are dropped, so that they do not
// damage the data. To be called once, by the shim's constructor.
void remember_stderr() noexcept;

// A target for messages: a file, a terminal, or a descriptor of the program. Any thread may write.
class MessageOutput {
 public:
  // `file`: path of the target, from CUWARDEN_LOG; empty for standard error. The text is not copied
  // and must outlive the object. Opens nothing.
  explicit MessageOutput(const char* file) noexcept;

  // Tries if the messages' target can be opened for writing. If not, says so in one line on
  // standard error, unless that was said before. A file that does not exist is no failure here: the
  // first message creates it.
  void complain_if_unusable() noexcept;

  // Writes the text `line`, which ends with a line feed, by one write(2) for each 4,096 bytes, so
  // that lines of several processes do not mix. If the target cannot be opened, writes to standard
  // error instead, the first time after a line that says so. If the target (a full pipe) takes
  // nothing for 100 ms, the line is lost. Raises no signal. A thread that a seccomp filter confines
  // writes nothing, because the filter may end the process for it.
  void write(std::string_view line) noexcept;

 private:
  // Writes the line to the target, and returns true even if the target does not take it. Returns
  // false, with errno, if the target cannot be opened, or if is_still_writable() is false for the
  // descriptor.
  bool write_to_file(std::string_view line) noexcept;
  // True if named_descriptor_ is open for writing and still leads to the file to which it led when
  // this object was made.
  bool is_still_writable() const noexcept;
  // Says on standard error that the file that CUWARDEN_LOG names takes no messages. Only the first
  // call does so. `error`: errno of the failure.
  void complain(int error) noexcept;

  const char* const file_;  // path of the file that gets the messages; empty: standard error
  // Descriptor of the program that `file_` names, such as 1 for /dev/stdout; -1 if `file_` is the
  // path of another file, or empty.
  int named_descriptor_ = -1;
  // Device of the file to which named_descriptor_ led when this object was made; 0 if inode_ is 0.
  dev_t device_ = 0;
  // Inode of the file to which named_descriptor_ led when this object was made. 0: the descriptor
  // was closed, or `file_` names no descriptor.
  ino_t inode_ = 0;
  std::atomic<bool> complained_{false};  // true once complain() has written its line
};

}  // namespace cuwarden::shim
