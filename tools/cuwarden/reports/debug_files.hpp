// Finds ELF files with debug information (or with the code itself) for the programs and libraries
// of a report, by build id. Files may have the names that GDB, elfutils and debuginfod give them,
// such as .build-id/ab/cdef.debug or abcdef/debuginfo. They may also have any other name, at any
// depth of a folder.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cuwarden {

// Searches given folders, and remembers the files that it has found.
class DebugFiles {
 public:
  // `folders`: folders to search, with all folders below them.
  explicit DebugFiles(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // Returns the path of a file with this build id (in hexadecimal digits), preferably one with
  // debug information; empty if there is none. Looks for the usual names first. If they do not lead
  // to debug information, reads the build ids of all files in the folders, once for this object.
  std::string find(const std::string& build_id);
  // True if there are no folders to search.
  bool empty() const { return folders_.empty(); }

 private:
  // The best file found so far for a build id.
  struct Found {
    std::string path;
    bool has_lines = false;  // true if the file has debug information
  };
  // Enters the file in found_ by its build id, if it is an ELF file with one.
  void look_at(const std::string& path);
  // Notes the build ids of all files in the folders of debug files and below them, a million files
  // and folders at most. Later calls do nothing.
  void look_at_all();

  std::vector<std::string> folders_;
  std::map<std::string, Found> found_;  // by build id
  bool has_looked_at_all_ = false;      // true once look_at_all() was called
};

}  // namespace cuwarden
