// Finds the reports and ledgers in a folder, by the contents of the files.
#pragma once

#include <string>
#include <vector>

namespace cuwarden {

// The reports and ledgers that were found in a folder and in the folders below it.
struct FolderContents {
  int error = 0;  // an errno if the folder that was searched could not be read; otherwise 0
  // Paths of the reports, of the ledgers (files with the allocation records of processes), and of
  // merged reports. Paths in one folder are sorted by name, and come before those in the folders
  // below it.
  std::vector<std::string> reports, ledgers, merged;
  // A line for each file or folder that could not be read (line_about_unreadable()), and for each
  // empty file whose name ends in .json, with its path and the reason. For each limit because of
  // which folders_from() leaves folders out, a line names the first of them.
  std::vector<std::string> unreadable;
};

// Returns an error line about a folder without reports. If the folder has merged reports, the line
// names one. `folder`: path of the folder.
std::string line_about_no_reports(const std::string& folder, const FolderContents&);

// Returns an error line about a file or folder that cannot be read: its path, the reason, and what
// to do. `error`: the errno of the failure.
std::string line_about_unreadable(const std::string& path, int error);

// Returns the beginning of a line about the ledgers of the folder: "FOLDER: 2 processes with a
// ledger but no report".
std::string line_about_ledgers(const std::string& folder, const FolderContents&);

// Returns the reports and ledgers in the folder at the path `folder` and in the folders below it
// (folders_from()), recognised by the first bytes of each file. Symbolic links to files are
// followed, and a file with several names is listed once. Leaves out reports that are just being
// written (.cuwarden-...), and damaged ledgers whose report was made (cuwarden-damaged-ledger-...).
FolderContents contents_of(const std::string& folder);

// Returns the part of `path` behind `folder` and a slash. The file at `path` lies in the folder or
// below it.
std::string path_below(const std::string& folder, const std::string& path);

// Returns the path `folder` itself and the paths of the folders below it, each before the folders
// inside it. Leaves out hidden folders, folders behind symbolic links, and those more than eight
// levels below `folder`. Returns at most ten thousand paths.
std::vector<std::string> folders_from(const std::string& folder);

}  // namespace cuwarden
