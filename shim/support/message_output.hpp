// The target of cuwarden's messages: standard error, or what CUWARDEN_LOG names. That may be a
// file, a terminal, /dev/null, or a descriptor of the program (/dev/stdout, /dev/stderr,
// /dev/fd/N). Nothing is kept open between two messages: the program may close or reuse any number.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string_view>

namespace cuwarden::shim {

// Notes the file behind standard error, so that messages do not go to a file that takes its number
// later. To be called once, before the program runs.
void remember_stderr() noexcept;

// The file, terminal or stream that messages are written to.
class MessageOutput {
 public:
  // `file`: empty for standard error; must outlive the object.
  explicit MessageOutput(const char* file) noexcept;

  // Says in one line on standard error, once, that messages cannot be written to the file in
  // CUWARDEN_LOG. A missing file is not noticed here: the first message makes it, and may fail.
  void complain_if_unusable() noexcept;

  // Writes the line by one write(2), so that lines of several processes do not mix. Never waits for
  // longer than 100 ms and raises no signal; a line that finds no room is lost. A confined thread
  // writes nothing, because its seccomp filter may kill the process for it.
  void write(std::string_view line) noexcept;

 private:
  // False, with errno, where the file takes no message.
  bool write_to_file(std::string_view line) noexcept;
  bool is_same_descriptor() const noexcept;
  void complain(int error) noexcept;

  const char* const file_;
  int named_descriptor_ = -1;  // that `file` stands for; -1: none
  dev_t device_ = 0;           // behind it at the start
  ino_t inode_ = 0;            // 0: it was closed
  std::atomic<bool> complained_{false};
};

}  // namespace cuwarden::shim
