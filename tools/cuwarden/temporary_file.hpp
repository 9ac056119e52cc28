// A file that `run` shares with the program's processes by its path, for as long as the object
// lives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cuwarden {

// A file of mode 0600 in $TMPDIR or /tmp, removed by the destructor. It stays locked meanwhile:
// what a killed `run` left there has no lock, and the next one of the same user removes it.
class TemporaryFile {
 public:
  TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();
  const std::string& path() const { return path_; }
  int error() const { return error_; }  // an errno where it could not be made, or 0
  // The absolute paths in it, each ended by a null byte, without repetitions.
  std::vector<std::string> entries() const;
  // True if it has this entry, which need not be a path.
  bool has_entry(std::string_view) const;

 private:
  std::string path_;
  int descriptor_ = -1;  // holds the lock
  int error_ = 0;
};

// Adds an entry to the file of another `run` at `path`, if it is still there.
void add_entry(const char* path, std::string_view entry);

}  // namespace cuwarden
