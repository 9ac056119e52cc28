// Writes a file that people keep, such as one under version control.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "reporters/files/output.hpp"
#include "reporters/files/unfinished_files.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {

// True if the path leads to a pipe, a device or a socket, which a file cannot replace.
bool is_stream(const std::string& path);

// Forbids lines of progress until the command ends if the path leads to a terminal, since lines
// would be mixed into the output. To be called by a command that writes to a path of the user's,
// before its work begins. `output`: the path; nothing happens if no file is there.
void forbid_progress_beside(const std::string& output);

// A file that is written piece by piece, and appears whole or not at all: the pieces go to a
// temporary file beside it, which is then renamed. A file that is there is replaced, and its
// permissions are kept. A symbolic link stays, and the file to which it leads is replaced; one that
// leads nowhere is a failure. A path that leads to a pipe or a character device, which cannot be
// replaced, is written directly. A block device, whose content would be destroyed, and a socket
// fail with ENXIO, a folder with EISDIR.
class WholeFile {
 public:
  // Makes the temporary file for the file at the path, or opens the pipe or device there. A named
  // pipe without a reader is waited for, as a shell does. If the path leads to a terminal, lines of
  // progress are forbidden until the command ends. `new_mode`: permissions of a new file, such as
  // 0600, which only its owner may read; null: those that the umask allows.
  explicit WholeFile(const std::string& path, std::optional<mode_t> new_mode = std::nullopt);
  // Removes the temporary file, if finish() did not succeed.
  ~WholeFile();

  // Returns the errno of the failure of the constructor or of finish(); 0 if there was none.
  int error() const { return error_; }
  // Returns the output that takes the file's content; this object owns it. To be called only if the
  // constructor did not fail, and not after finish().
  Output& output() { return *output_; }
  // Writes the last bytes, and renames the temporary file. To be called once, and only if the
  // constructor did not fail. Returns 0, or the errno of this or of an earlier write; then a file
  // that was there is as before. It is no failure if the reader of a pipe has closed it, since the
  // reader has read all that it wanted.
  int finish();

 private:
  int error_ = 0;  // errno of the failure of the constructor or of finish(); 0: none
  // target_: path of the file to be written, behind symbolic links. temporary_: path of the
  // temporary file beside it. Both are empty if the content goes to a pipe or a device.
  std::string target_, temporary_;
  std::optional<mode_t> new_mode_;  // permissions of a new file; null: those that the umask allows
  std::optional<UnfinishedFile> unfinished_;  // the temporary file, until it is renamed
  // Descriptor of the temporary file, or of the pipe or device.
  Descriptor file_;
  // Takes the content, and writes it to file_. Null if there is no file_ because it could not be
  // made or opened. Also null once the temporary file was renamed.
  std::unique_ptr<Output> output_;
};

// Writes the text to the file at the path, which appears whole or not at all (WholeFile). Returns
// 0, or the errno of the failure.
int write_whole_file(const std::string& path, std::string_view text);

// Returns the line about a file that cannot be written: its path, the reason, and what to do.
// `error`: the errno of the failure. `option`: the option that takes another path, such as
// "--output".
std::string line_about_unwritable(const std::string& path, int error, std::string_view option);

}  // namespace cuwarden
