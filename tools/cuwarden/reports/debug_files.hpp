// Finds the files with the code or the debug information of modules, by build id. In a folder they
// may have the names that GDB, elfutils and debuginfod give them (.build-id/ab/cdef.debug,
// ab/cdef.debug, abcdef/debuginfo), or any other name at any depth.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cuwarden {

class DebugFiles {
 public:
  explicit DebugFiles(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // Returns the path of a file with this build id (in hexadecimal), preferably one with debug
  // information; empty if there is none.
  std::string find(const std::string& build_id);
  bool empty() const { return folders_.empty(); }

 private:
  struct Found {
    std::string path;
    bool has_lines = false;
  };
  void look_at(const std::string& path);
  void look_at_all();

  std::vector<std::string> folders_;
  std::map<std::string, Found> found_;  // by build id
  bool has_looked_at_all_ = false;
};

}  // namespace cuwarden
