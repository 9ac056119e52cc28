// A file that `run` shares with the processes of its program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cuwarden {

// A file of mode 0600 in $TMPDIR or /tmp, which is locked until the destructor removes it. A file
// that a killed `run` has left is not locked, and the next `run` of the same user removes it.
class TemporaryFile {
 public:
  TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();
  const std::string& path() const { return path_; }
  int error() const { return error_; }  // an errno if the file could not be made, or 0
  // Returns the absolute paths in the file, each once. In the file, a null byte ends each.
  std::vector<std::string> entries() const;
  // Returns true if the file has this entry, which need not be a path.
  bool has_entry(std::string_view) const;

 private:
  std::string path_;
  int descriptor_ = -1;  // holds the lock
  int error_ = 0;
};

// Adds an entry to the file of another `run` at `path`, if it is still there.
void add_entry(const char* path, std::string_view entry);

}  // namespace cuwarden
