// Finds ELF files with debug information (or with the code itself) for the programs and libraries
// of a report, by build id. Files may have the names that GDB, elfutils and debuginfod give them,
// such as .build-id/ab/cdef.debug or abcdef/debuginfo. They may also have any other name, at any
// depth of a folder.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cuwarden {

// Finds ELF files with debug information by build id in given folders, and stores the files that it
// has found.
class DebugFiles {
 public:
  // `folders`: paths of the folders in which debug files are searched, also in all folders below.
  explicit DebugFiles(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // Returns the path of a file with this build id (in hexadecimal digits), one with debug
  // information if there is one; empty if no file has the build id, or if the build id is shorter
  // than four digits. Looks for the usual names first, such as .build-id/ab/cdef.debug. If they do
  // not lead to debug information, reads the build ids of all files in the folders, once for this
  // object.
  std::string find(const std::string& build_id);
  // True if there are no folders to search.
  bool empty() const { return folders_.empty(); }

 private:
  // A file that was found for a build id. One with debug information replaces one without.
  struct Found {
    std::string path;        // path of a file with the build id
    bool has_lines = false;  // true if the file has debug information, such as line numbers
  };
  // Enters the file at `path` in found_, if it is an ELF file with a build id. A file that found_
  // already has for this build id stays, unless only the new one has debug information.
  void look_at(const std::string& path);
  // Calls look_at() for all files in folders_ and in the folders below them; stops after a million
  // files and folders. Later calls do nothing.
  void look_at_all();

  // Paths of the folders in which debug files are searched, also in all folders below.
  std::vector<std::string> folders_;
  // Files found so far, by build id in hexadecimal digits: one with debug information if there is
  // one, otherwise the first.
  std::map<std::string, Found> found_;
  bool has_looked_at_all_ = false;  // true once look_at_all() has begun to read folders_
};

}  // namespace cuwarden
