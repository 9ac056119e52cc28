// Finds the reports and ledgers in a folder, by the contents of the files.
#pragma once

#include <string>
#include <vector>

namespace cuwarden {

// The reports and ledgers that contents_of() found.
struct FolderContents {
  int error = 0;  // an errno if the folder itself could not be read; otherwise 0
  // Paths of the reports, and of the ledgers (files with the allocation records of processes).
  // Paths in one folder are sorted by name, and come before those in the folders below it.
  std::vector<std::string> reports, ledgers;
  // A line for each file or folder that could not be read, with its path and the reason.
  std::vector<std::string> unreadable;
};

// Finds the reports and ledgers in the folder and in the folders below it (folders_from()), by the
// first bytes of each file. Symbolic links to files are followed, and a file with several names is
// listed once. Leaves out reports that are just being written, and damaged ledgers whose report was
// made (cuwarden-damaged-ledger-...).
FolderContents contents_of(const std::string& folder);

// Returns the path of `folder` and the paths of the folders below it, each folder before the
// folders inside it. Leaves out hidden folders, and folders behind symbolic links. Stops at eight
// levels below `folder`, and at ten thousand folders.
std::vector<std::string> folders_from(const std::string& folder);

}  // namespace cuwarden
