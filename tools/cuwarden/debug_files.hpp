// Files with the code or the debug information of those that ran, by build id. They may lie in a
// folder as GDB, elfutils and debuginfod leave them (.build-id/ab/cdef.debug, ab/cdef.debug,
// abcdef/debuginfo) or anywhere below it under any name.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cuwarden {

class DebugFiles {
 public:
  explicit DebugFiles(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // The file that says most of the one with this build id (in hexadecimal): with debug information
  // rather than without. Empty if there is none.
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
