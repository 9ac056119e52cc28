// A folder that lasts as long as a test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace cuwarden {

// Makes a folder with a name of its own, and removes it with all that is in it at the end of the
// object's life.
class TemporaryFolder {
 public:
  // Makes the folder below the existing folder `parent`.
  explicit TemporaryFolder(const std::string& parent = std::filesystem::temp_directory_path()) {
    std::string pattern = parent + "/cuwarden-test-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  // Returns the path of the folder.
  const char* path() const { return path_.c_str(); }

 private:
  // Path of the folder.
  std::string path_;
};

}  // namespace cuwarden
