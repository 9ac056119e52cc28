// A temporary file by which `cuwarden run` learns from the processes of its program where their
// ledgers and reports are. Each entry of the file ends with a null byte.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cuwarden {

// A new, empty file of mode 0600 in $TMPDIR or /tmp. The destructor removes it. Until then the file
// is locked, except on network file systems. A file that a killed `cuwarden run` has left has no
// lock; the constructor removes such files of this user.
class TemporaryFile {
 public:
  // Makes the file; error() says if that failed.
  TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();
  // Returns the path of the file.
  const std::string& path() const { return path_; }
  // Removes the file's name, so that nothing is left however the command ends. The entries can
  // still be read.
  void remove_name();
  // Returns an errno if the temporary file could not be made; otherwise 0.
  int error() const { return error_; }
  // Returns the entries of the file that are absolute paths (of ledgers and reports), each once, in
  // the order in which processes have added them.
  std::vector<std::string> entries() const;
  // Returns true if the file contains exactly this entry: a path, or a fixed text such as
  // no_report_wanted, by which a process says that it has no report.
  bool has_entry(std::string_view) const;

 private:
  // Returns all that processes have written to the file.
  std::string content() const;

  std::string path_;
  int descriptor_ = -1;  // descriptor that holds the lock; -1 if the file could not be made
  int error_ = 0;
  bool has_name_ = false;
};

// Appends an entry (a text without null bytes) and a null byte to the file at `path`, the temporary
// file of a `cuwarden run` that started this one. Does nothing if the file does not exist or cannot
// be written.
void add_entry(const char* path, std::string_view entry);

}  // namespace cuwarden
