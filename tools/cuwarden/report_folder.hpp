// The reports and ledgers that lie in a folder, told by what is in the files.
#pragma once

#include <string>
#include <vector>

namespace cuwarden {

struct FolderContents {
  int error = 0;                              // an errno where the folder could not be read
  std::vector<std::string> reports, ledgers;  // paths, by name
  std::vector<std::string> unreadable;        // a line each: what, and why
};

// Looks at the regular files directly in the folder, also behind symbolic links, each once. Not at
// reports that are being written, nor at damaged ledgers, whose reports were made.
FolderContents contents_of(const std::string& folder);

}  // namespace cuwarden
