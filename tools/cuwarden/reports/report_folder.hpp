// Finds the reports and ledgers in a folder, by the contents of the files.
#pragma once

#include <string>
#include <vector>

namespace cuwarden {

struct FolderContents {
  int error = 0;                              // an errno if the folder could not be read, or 0
  std::vector<std::string> reports, ledgers;  // paths, sorted by name
  std::vector<std::string> unreadable;        // a line for each unreadable file, with the reason
};

// Looks at each regular file in the folder and in those below it once, through symbolic links to
// files, too. Leaves out reports that are being written, and damaged ledgers that were set aside
// when their report was made.
FolderContents contents_of(const std::string& folder);

// Returns the folder and those below it, each before its own, without hidden ones and without those
// behind symbolic links: eight levels, ten thousand folders at most.
std::vector<std::string> folders_from(const std::string& folder);

}  // namespace cuwarden
