// A temporary file of `cuwarden run`. In its list file, the processes of its program enter the
// paths of their ledgers and reports; each entry ends with a null byte. Another one is the file by
// which these processes share a simulated GPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cuwarden {

// A new, empty file of mode 0600 in $TMPDIR (if absolute) or /tmp, for `cuwarden run`. The
// destructor removes it. The object keeps the file locked (flock), except on network file systems.
// A file that a killed `cuwarden run` has left has no lock; the constructor removes such files of
// this user that are a minute old or more.
class TemporaryFile {
 public:
  // Makes the temporary file. If that fails, error() returns the errno.
  TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  // Removes the temporary file from its folder, and releases its lock.
  ~TemporaryFile();
  // Returns the path that the temporary file has, or had before remove_name().
  const std::string& path() const { return path_; }
  // Removes the temporary file from its folder, so that no file is left, however the command ends.
  // The entries can still be read from this object. Later calls do nothing.
  void remove_name();
  // Returns an errno if the temporary file could not be made; otherwise 0.
  int error() const { return error_; }
  // Returns the entries of the list file that are absolute paths (of ledgers and reports), each
  // once, in the order in which processes have added them. Empty if the file could not be made.
  std::vector<std::string> entries() const;
  // True if the list file has the entry `wanted`. An entry is a path, or a fixed text such as
  // no_report_wanted, by which a process says that it has no report.
  bool has_entry(std::string_view wanted) const;

 private:
  // Returns all bytes that processes have written to the temporary file.
  std::string content() const;

  std::string path_;  // path that the temporary file has, or had before remove_name()
  // Descriptor of the temporary file, which also holds its lock; -1 if the file could not be made.
  int descriptor_ = -1;
  int error_ = 0;          // errno if the temporary file could not be made; otherwise 0
  bool has_name_ = false;  // true while the temporary file is in its folder
};

// Appends an entry (a text without null bytes) and a null byte to the file at `path`: the list file
// of another `cuwarden run`, which has started this one. Does nothing if the file does not exist or
// cannot be written.
void add_entry(const char* path, std::string_view entry);

}  // namespace cuwarden
